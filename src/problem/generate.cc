#include "problem/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "problem/edges.h"
#include "problem/elements.h"
#include "problem/rng.h"
#include "problem/selection.h"

namespace dsattn {
namespace {

constexpr std::array kSelectionNames = {"random", "windowed", "high-overlap"};
constexpr int64_t kIndexDim = 128;
constexpr int64_t kMaxExtent = INT32_MAX;

Result<void> check_options(const GenerateOptions& options) {
  const auto in_range = [](std::string_view name, int64_t value, int64_t low,
                           int64_t high) -> Result<void> {
    if (value >= low && value <= high) return {};
    return fail(ErrorCode::kInvalidValue,
                fmt::format("{} is {}, expected {} to {}", name, value, low, high));
  };
  Result<void> checked = check_op_name(options.op);
  if (checked) checked = in_range("queries", options.queries, 0, kMaxExtent);
  if (checked) checked = in_range("keys", options.keys, 0, kMaxExtent);
  if (checked) checked = in_range("heads", options.heads, 1, kMaxExtent);
  if (checked) checked = in_range("d-qk", options.d_qk, 1, kMaxExtent);
  if (checked) checked = in_range("d-v", options.d_v, 0, options.d_qk);
  if (checked) checked = in_range("top-k", options.top_k, 0, 65536);
  if (checked) checked = in_range("index-heads", options.index_heads, 1, kMaxExtent);
  if (checked) checked = in_range("ratio", options.ratio, 1, kMaxExtent);
  if (checked && options.segments_q.size() != options.segments_k.size()) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("{} segments of queries and {} of keys, expected as many",
                            options.segments_q.size(), options.segments_k.size()));
  }
  const size_t segments = std::max<size_t>(options.segments_q.size(), 1);
  if (checked && !options.q_offsets.empty() && options.q_offsets.size() != segments) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("{} q-offsets for {} segments", options.q_offsets.size(), segments));
  }
  return checked;
}

/// Makes the inputs of one operation by name, in the order of its Schema.
class Generator {
 public:
  explicit Generator(const GenerateOptions& options) : options_(options), rng_(options.seed) {
    problem_.op = options.op;
    problem_.metadata = options.metadata;
  }

  Result<Problem> run() {
    auto made = for_op<bool>(options_.op, [&]<class Args>() -> Result<bool> {
      for (const auto& field : Schema<Args>::params()) add_parameter(field.name);
      for (const auto& field : Schema<Args>::tensors()) {
        if (field.spec.is_output()) {
          add_output_parameter(field.spec.name);
        } else if (auto added = add_input(field.spec.name); !added) {
          return tl::unexpected(added.error());
        }
      }
      return true;
    });
    if (!made) return tl::unexpected(made.error());
    return std::move(problem_);
  }

 private:
  void set_parameter(std::string_view name, std::string value) {
    problem_.metadata.try_emplace(std::string(name), std::move(value));
  }

  void add_parameter(std::string_view name) {
    if (name == "sm_scale") {
      const auto width = static_cast<float>(kIndexDim * options_.index_heads);
      set_parameter(name, fmt::format("{}", 1.0f / std::sqrt(width)));
    }
    if (name == "ratio") set_parameter(name, std::to_string(options_.ratio));
  }

  void add_output_parameter(std::string_view name) {
    if (name == "topk_idxs") set_parameter("top_k", std::to_string(options_.top_k));
    if (name == "out") set_parameter("d_v", std::to_string(options_.d_v));
    if (!options_.f32_gradients) return;
    if (name == "dkv") set_parameter("dkv_dtype", "F32");
    if (name == "d_index_k") set_parameter("d_index_k_dtype", "F32");
  }

  Result<OwnedTensor*> make(std::string_view name, DType dtype,
                            std::initializer_list<int64_t> shape) {
    auto tensor = OwnedTensor::make(dtype, std::span(shape.begin(), shape.size()));
    if (!tensor) {
      return fail(tensor.error().code, fmt::format("{}: {}", name, tensor.error().message));
    }
    return &problem_.tensors.insert_or_assign(std::string(name), *tensor).first->second;
  }

  template <class F>
  Result<void> add(std::string_view name, DType dtype, std::initializer_list<int64_t> shape,
                   F&& value) {
    auto tensor = make(name, dtype, shape);
    if (!tensor) return tl::unexpected(tensor.error());
    fill_with(**tensor, value);
    return {};
  }

  Result<void> add_normal(std::string_view name, DType dtype,
                          std::initializer_list<int64_t> shape) {
    return add(name, dtype, shape, [&](int64_t) { return rng_.normal(); });
  }

  Result<void> add_list(std::string_view name, const std::vector<int64_t>& values) {
    return add(name, DType::kI32, {static_cast<int64_t>(values.size())},
               [&](int64_t i) { return static_cast<double>(values[static_cast<size_t>(i)]); });
  }

  Result<void> add_cumulative(std::string_view name, const std::vector<int64_t>& lengths) {
    std::vector<int64_t> ends(lengths.size() + 1);
    std::partial_sum(lengths.begin(), lengths.end(), ends.begin() + 1);
    return add_list(name, ends);
  }

  Result<void> add_lengths(std::string_view name, int64_t most) {
    return add(name, DType::kI32, {options_.queries},
               [&](int64_t) { return static_cast<double>(rng_.between(0, most)); });
  }

  Result<void> add_ids() {
    auto ids = make("topk_idxs", DType::kI32, {options_.queries, options_.top_k});
    if (!ids) return tl::unexpected(ids.error());
    SelectionMaker maker(options_.kind, options_.queries, options_.keys, options_.top_k, rng_);
    for (int64_t t = 0; t < options_.queries; ++t) {
      maker.row(t, (*ids)->elements<int32_t>().subspan(static_cast<size_t>(t * options_.top_k),
                                                       static_cast<size_t>(options_.top_k)));
    }
    return {};
  }

  /// predict and target: rows of positive numbers that sum to 1 over what the row may see.
  Result<void> add_distribution(std::string_view name) {
    const bool sparse = options_.op == "indexer_backward";
    const int64_t width = sparse ? options_.top_k : options_.keys;
    auto tensor = make(name, DType::kF32, {options_.queries, width});
    if (!tensor) return tl::unexpected(tensor.error());
    for (int64_t t = 0; t < options_.queries; ++t) {
      auto row = (*tensor)->elements<float>().subspan(static_cast<size_t>(t * width),
                                                      static_cast<size_t>(width));
      double sum = 0;
      for (float& x : row) {
        x = static_cast<float>(rng_.uniform() + 1e-3);
        sum += x;
      }
      for (float& x : row) x = static_cast<float>(x / sum);
    }
    return {};
  }

  Result<void> add_input(std::string_view name) {
    const GenerateOptions& o = options_;
    if (name == "q") return add_normal(name, o.dtype, {o.queries, o.heads, o.d_qk});
    if (name == "kv") return add_normal(name, o.dtype, {o.keys, o.d_qk});
    if (name == "dout") return add_normal(name, o.dtype, {o.queries, o.heads, o.d_v});
    if (name == "topk_idxs") return add_ids();
    if (name == "index_q") {
      return add_normal(name, DType::kBF16, {o.queries, o.index_heads, kIndexDim});
    }
    if (name == "index_k") return add_normal(name, DType::kBF16, {o.keys, kIndexDim});
    if (name == "index_w") {
      const DType dtype = o.f32_index_weights ? DType::kF32 : DType::kBF16;
      return add_normal(name, dtype, {o.queries, o.index_heads});
    }
    if (name == "scores") return add_normal(name, DType::kF32, {o.queries, o.keys});
    if (name == "predict" || name == "target") return add_distribution(name);
    return add_optional_input(name);
  }

  Result<void> add_optional_input(std::string_view name) {
    const GenerateOptions& o = options_;
    if (name == "topk_length" && o.lengths) return add_lengths(name, o.top_k);
    if (name == "seq_lens" && o.lengths) return add_lengths(name, o.keys);
    if (name == "sink" && o.sink) return add_normal(name, DType::kF32, {o.heads});
    if (name == "cu_seqlens_q" && !o.segments_q.empty()) return add_cumulative(name, o.segments_q);
    if (name == "cu_seqlens_k" && !o.segments_k.empty()) return add_cumulative(name, o.segments_k);
    if (name == "q_offsets" && !o.q_offsets.empty()) return add_list(name, o.q_offsets);
    if (name == "grad_loss" && o.grad_loss) {
      return add(name, DType::kF32, {1}, [](int64_t) { return 1.5; });
    }
    return {};  // out and lse follow from the rest
  }

  const GenerateOptions& options_;
  Rng rng_;
  Problem problem_;
};

/// lse of the operations that take one, from the forward over the same rows.
Result<Problem> with_lse(Problem problem, const ExecContext& ctx) {
  const bool sparse =
      problem.op == "sparse_attention_scores" || problem.op == "sparse_indexer_loss";
  if ((!sparse && problem.op != "dense_indexer_loss") || problem.has("lse")) return problem;
  Problem helper = problem;
  helper.op = sparse ? "sparse_attention_forward" : "dense_attention_lse";
  auto results = run_problem(helper, ctx);
  if (!results) return tl::unexpected(results.error());
  problem.tensors.insert_or_assign("lse", results->at("lse"));
  return problem;
}

}  // namespace

std::string_view to_string(Selection kind) { return kSelectionNames[static_cast<size_t>(kind)]; }

Result<Selection> parse_selection(std::string_view name) {
  for (size_t i = 0; i < kSelectionNames.size(); ++i) {
    if (name == kSelectionNames[i]) return static_cast<Selection>(i);
  }
  return fail(ErrorCode::kInvalidValue, fmt::format("kind '{}' is unknown, expected one of {}",
                                                    name, fmt::join(kSelectionNames, ", ")));
}

Result<Problem> generate(GenerateOptions options, const ExecContext& ctx) {
  const Edge* edge = nullptr;
  if (!options.edge.empty()) {
    auto found = find_edge(options.edge, options.op);
    if (!found) return tl::unexpected(found.error());
    edge = *found;
  }
  if (!options.segments_q.empty()) {
    options.queries = std::reduce(options.segments_q.begin(), options.segments_q.end());
    options.keys = std::reduce(options.segments_k.begin(), options.segments_k.end());
  }
  if (auto checked = check_options(options); !checked) return tl::unexpected(checked.error());
  if (options.d_v == 0) options.d_v = std::min<int64_t>(options.d_qk, 512);
  auto problem = Generator(options).run();
  if (!problem) return problem;
  if (edge != nullptr) {
    Rng rng(options.seed + 1);
    edge->apply(*problem, rng);
  }
  return with_lse(std::move(*problem), ctx);
}

}  // namespace dsattn
