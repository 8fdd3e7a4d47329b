#include "cases.h"

#include <fmt/format.h>

#include <cctype>
#include <cstdlib>

#include "problem/edges.h"

namespace dsattn::testing_table {
namespace {

constexpr const char* kSparseAttentionOps[] = {"sparse_attention_forward",
                                               "sparse_attention_backward", "sparse_attention"};

std::vector<std::string_view> all_ops() {
  std::vector<std::string_view> names;
  for_each_op([&]<class Args>() { names.push_back(Schema<Args>::kName); });
  return names;
}

/// DSATTN_CASE_SEED draws all inputs afresh; failures name the seed.
uint64_t case_seed() {
  const char* text = std::getenv("DSATTN_CASE_SEED");
  return text == nullptr ? 1
                         : static_cast<uint64_t>(parse_int("DSATTN_CASE_SEED", text).value_or(1));
}

/// Sizes that are nobody's multiple, small enough for float64 loops.
GenerateOptions base(std::string_view op) {
  GenerateOptions options;
  options.op = op;
  options.seed = case_seed();
  options.queries = 9;
  options.keys = 150;
  options.heads = 5;
  options.d_qk = 72;
  options.d_v = 56;
  options.top_k = 77;
  options.index_heads = 3;
  return options;
}

class Table {
 public:
  std::vector<Case> cases;

  void add(std::string_view label, GenerateOptions options) {
    cases.push_back({identifier(fmt::format("{}_{}", options.op, label)), std::move(options)});
  }

  void add_edges() {
    for (const Edge& edge : edges()) {
      for (std::string_view op : all_ops()) {
        if (!reads_tensor(op, edge.tensor)) continue;
        GenerateOptions options = base(op);
        options.edge = edge.name;
        if (edge.name.starts_with("leading")) options.top_k = 150;  // some slots stay
        if (edge.name == "huge-dot") options.dtype = DType::kF16;
        add(fmt::format("edge_{}", edge.name), options);
      }
    }
  }

  void add_variants() {
    for (std::string_view op : all_ops()) {
      add("plain", base(op));
      GenerateOptions rich = base(op);
      rich.sink = rich.lengths = rich.f32_gradients = true;
      rich.f32_index_weights = rich.grad_loss = true;
      rich.metadata = {{"softmax_scale", "0.2"}, {"sm_scale", "-0.03"}, {"loss_coeff", "0.7"},
                       {"num_tokens", "40"},     {"clipped", "true"},   {"deterministic", "true"},
                       {"order", "score"}};
      add("rich", rich);
      GenerateOptions half = base(op);
      half.dtype = DType::kF16;
      half.kind = Selection::kHighOverlap;
      if (reads_tensor(op, "q")) add("f16", half);
      for (const char* empty : {"queries", "keys", "slots"}) add_empty(op, empty);
    }
  }

  void add_empty(std::string_view op, std::string_view what) {
    GenerateOptions options = base(op);
    if (what == "queries") options.queries = 0;
    if (what == "keys") options.keys = 0;
    if (what == "slots") options.top_k = 0;
    options.sink = true;
    add(fmt::format("no_{}", what), options);
  }

  void add_attention_shapes() {
    for (const char* op : kSparseAttentionOps) {
      for (int64_t k : {1, 63, 64, 65, 129, 513, 705, 1152, 2047}) {
        GenerateOptions options = base(op);
        options.top_k = k;
        options.keys = 2100;
        options.queries = 2;
        options.heads = 2;
        options.sink = true;
        add(fmt::format("k{}", k), options);
      }
      for (int64_t heads : {1, 8, 16, 24, 32, 40, 64, 96, 128}) {
        GenerateOptions options = base(op);
        options.heads = heads;
        options.queries = 3;
        options.top_k = 70;
        add(fmt::format("h{}", heads), options);
      }
      for (const auto& [d, dv] : {std::pair(576, 512), {512, 512}, {1, 1}, {33, 7}}) {
        GenerateOptions options = base(op);
        options.d_qk = d;
        options.d_v = dv;
        options.kind = Selection::kWindowed;
        options.queries = 4;
        add(fmt::format("d{}_{}", d, dv), options);
      }
    }
  }

  void add_masks() {
    for (std::string_view op : all_ops()) {
      if (!reads_tensor(op, "cu_seqlens_q")) continue;
      for (int64_t ratio : {1, 4, 128}) {
        for (int64_t offset : {0, 5, 200, -4, -300}) {
          add_mask(op, fmt::format("ratio{}_offset{}", ratio, offset), ratio, {}, {}, {offset});
        }
      }
      GenerateOptions one = base(op);
      one.queries = 1;
      one.q_offsets = {149};
      add("one_query", one);
      add_mask(op, "packed_1_1", 1, {1, 1}, {1, 1}, {});
      add_mask(op, "packed_3_7", 1, {3, 7}, {30, 70}, {27, 63});
      add_mask(op, "packed_3_7_ratio4", 4, {3, 7}, {3, 7}, {9, -2});
      add_mask(op, "packed_empty", 1, {0, 3, 0, 7, 0}, {5, 3, 0, 7, 9}, {});
      add_mask(op, "packed_no_keys", 1, {4, 3}, {0, 11}, {0, 6});
      if (op != "indexer_forward_top_k") continue;
      GenerateOptions local = base(op);
      local.segments_q = {3, 0, 7};
      local.segments_k = {60, 4, 90};
      local.q_offsets = {57, 0, 83};
      local.top_k = 11;
      local.metadata["ids"] = "local";
      add("local_ids", local);
    }
  }

  void add_mask(std::string_view op, std::string_view label, int64_t ratio,
                std::vector<int64_t> segments_q, std::vector<int64_t> segments_k,
                std::vector<int64_t> offsets) {
    GenerateOptions options = base(op);
    options.ratio = ratio;
    options.segments_q = std::move(segments_q);
    options.segments_k = std::move(segments_k);
    options.q_offsets = std::move(offsets);
    options.top_k = 11;
    options.sink = true;
    add(label, options);
  }

  void add_selections() {
    for (int64_t k : {1, 64, 150, 151, 2047}) {
      for (const char* order : {"id", "score"}) {
        GenerateOptions options = base("indexer_top_k");
        options.top_k = k;
        options.lengths = true;
        options.metadata["order"] = order;
        add(fmt::format("k{}_{}", k, order), options);
        options.edge = "ties";
        add(fmt::format("k{}_{}_ties", k, order), options);
      }
    }
    GenerateOptions wide = base("indexer_top_k");
    wide.queries = 1;
    wide.keys = 300000;
    wide.top_k = 2048;
    add("wide", wide);
    wide.top_k = 65536;
    add("wide_k65536", wide);
    GenerateOptions fused = base("indexer_forward_top_k");
    fused.queries = 2;
    fused.keys = 70000;
    fused.index_heads = 1;
    fused.q_offsets = {fused.keys - 1};
    fused.top_k = 65536;
    fused.metadata["order"] = "score";
    add("wide_k65536", fused);
  }
};

}  // namespace

const std::vector<Case>& cases() {
  static const std::vector<Case> list = [] {
    Table table;
    table.add_variants();
    table.add_edges();
    table.add_attention_shapes();
    table.add_masks();
    table.add_selections();
    return table.cases;
  }();
  return list;
}

std::vector<Column> backends_under_test() {
  std::vector<Column> columns;
  ExecContext ref;
  ref.backend = Backend::kRef;
  columns.push_back({"ref", ref});
  for (CpuIsa isa :
       {CpuIsa::kBaseline, CpuIsa::kAvx2, CpuIsa::kAvx512, CpuIsa::kAvx512Bf16, CpuIsa::kAmx}) {
    if (isa > best_cpu_isa()) break;
    ExecContext cpu;
    cpu.backend = Backend::kCpu;
    cpu.cpu_isa = isa;
    columns.push_back({identifier(fmt::format("cpu_{}", to_string(isa))), cpu});
  }
  return columns;
}

Problem problem_of(const GenerateOptions& options) {
  ExecContext ref;
  ref.backend = Backend::kRef;
  auto problem = generate(options, ref);
  if (problem) return *problem;
  fmt::print(stderr, "cannot make the problem {} {}: {}\n", options.op, options.edge,
             problem.error().message);
  std::abort();
}

std::string identifier(std::string_view text) {
  std::string name;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool sign = i > 0 && (text[i - 1] == '=' || text[i - 1] == 'e');
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) name.push_back(c);
    if (c == '_') name.push_back(c);
    if (c == '-') name += sign ? "minus" : "_";
    if (c == '=') name += "_is_";
    if (c == '+') name += "plus";
    if (c == '.') name += "p";
  }
  return name;
}

}  // namespace dsattn::testing_table
