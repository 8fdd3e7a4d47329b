// The command's grammar: verbs, flags and help. What the verbs do is in verbs.cc and bench.cc.
#include <CLI/CLI.hpp>

#include "cli/cli.h"
#include "cli/demo_verb.h"

namespace dsattn::cli {
namespace {

constexpr const char* kAbout =
    "DeepSeek Sparse Attention: make problems, run them on a backend, check and time the result.";

constexpr const char* kExamples = R"(
Examples:
  dsattn info
  dsattn gen sparse_attention_forward --queries 128 --keys 4096 --top-k 512 -o p.safetensors
  dsattn run p.safetensors -o r.safetensors
  dsattn verify p.safetensors --backend cpu
  dsattn bench p.safetensors --json
`dsattn VERB --help` explains a verb. A problem file holds one call: its input tensors, and its
parameters as metadata (docs/contract.md, section 10, lists the names).

Exit status: 0 pass; 1 a check failed; 2 usage or input; 3 unavailable on this machine.)";

void add_json(CLI::App& verb, Common& common) {
  verb.add_flag("--json", common.json, "Print the report as JSON on stdout");
}

void add_common(CLI::App& verb, Common& common) {
  verb.add_option("--backend", common.backend,
                  "Who computes: auto, ref, cpu, cuda, sim-sm90a or sim-sm100a")
      ->capture_default_str();
  verb.add_option("--threads", common.threads,
                  "CPU threads, 0 = all cores; results do not depend on it")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  verb.add_option("--isa", common.isa,
                  "Best CPU instruction set to use: auto, baseline, avx2, avx512, avx512-bf16, amx")
      ->capture_default_str();
  add_json(verb, common);
}

void add_sizes(CLI::App& verb, GenerateOptions& o) {
  verb.add_option("--queries", o.queries, "Sq, query tokens")->capture_default_str();
  verb.add_option("--keys", o.keys, "Skv, key rows")->capture_default_str();
  verb.add_option("--heads", o.heads, "H, attention heads")->capture_default_str();
  verb.add_option("--d-qk", o.d_qk, "D, width of q and kv")->capture_default_str();
  verb.add_option("--d-v", o.d_v, "Dv, width of a value; 0 = min(D, 512)")->capture_default_str();
  verb.add_option("--top-k", o.top_k, "K, selected keys per query")->capture_default_str();
  verb.add_option("--index-heads", o.index_heads, "Hi, heads of the indexer")
      ->capture_default_str();
}

void add_gen(CLI::App& app, GenOptions& options, int& status) {
  CLI::App* verb = app.add_subcommand("gen", "Make a problem file from a seed");
  GenerateOptions& o = options.problem;
  verb->footer(
      "Example: dsattn gen sparse_attention_backward --heads 64 --kind high-overlap -o "
      "p.safetensors");
  verb->add_option("op", o.op, "The operation, e.g. sparse_attention_forward");
  verb->add_option("-o,--output", options.output, "The problem file to write");
  verb->add_option("--seed", o.seed, "The same seed gives the same file on every machine")
      ->capture_default_str();
  verb->add_option("--kind", options.kind, "How selected ids lie: random, windowed, high-overlap")
      ->capture_default_str();
  verb->add_option("--edge", o.edge, "An edge case by name; --list-edges shows them");
  verb->add_flag("--list-edges", options.list_edges, "List the edge cases (of OP) and stop");
  add_sizes(*verb, o);
  verb->add_option("--dtype", options.dtype, "Type of q, kv and dout: bf16, f16, f32, f64")
      ->capture_default_str();
  verb->add_flag("--sink", o.sink, "With an attention sink per head");
  verb->add_flag("--lengths", o.lengths, "With topk_length (or seq_lens) per query");
  verb->add_flag("--f32-gradients", o.f32_gradients, "dkv and d_index_k in F32");
  verb->add_flag("--f32-index-weights", o.f32_index_weights, "index_w in F32");
  verb->add_flag("--grad-loss", o.grad_loss, "With grad_loss");
  verb->add_option("--ratio", o.ratio, "Compression ratio of the causal mask")
      ->capture_default_str();
  verb->add_option("--segments-q", o.segments_q, "Query tokens of each packed sequence: 3,7,0")
      ->delimiter(',');
  verb->add_option("--segments-k", o.segments_k, "Keys of each packed sequence")->delimiter(',');
  verb->add_option("--q-offsets", o.q_offsets, "Global position of each first query")
      ->delimiter(',');
  add_common(*verb, options.common);
  verb->callback([&] { status = gen(options); });
}

void add_run(CLI::App& app, RunOptions& options, int& status) {
  CLI::App* verb = app.add_subcommand("run", "Run a problem and write its result");
  verb->footer("Example: dsattn run p.safetensors -o r.safetensors --backend cpu");
  verb->add_option("problem", options.problem, "The problem file")->required();
  verb->add_option("-o,--output", options.output, "The result file to write")->required();
  add_common(*verb, options.common);
  verb->callback([&] { status = run(options); });
}

void add_verify(CLI::App& app, VerifyOptions& options, int& status) {
  CLI::App* verb =
      app.add_subcommand("verify", "Compare a backend with the float64 reference, per tensor");
  verb->footer("Example: dsattn verify p.safetensors --backend cpu --isa avx2");
  verb->add_option("problem", options.problem, "The problem file")->required();
  verb->add_option("--result", options.result, "Judge this result file instead of running");
  add_common(*verb, options.common);
  verb->callback([&] { status = verify(options); });
}

void add_bench(CLI::App& app, BenchOptions& options, int& status) {
  CLI::App* verb = app.add_subcommand(
      "bench", "Time a problem: median, spread, GFLOP/s, share of this machine's matrix peak");
  verb->footer("Example: dsattn bench p.safetensors --repeats 20 --json");
  verb->add_option("problem", options.problem, "The problem file")->required();
  verb->add_option("--repeats", options.repeats, "Timed runs, after one to warm up")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->capture_default_str();
  verb->add_option("--seconds", options.seconds, "Stop repeating after this many seconds")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  add_common(*verb, options.common);
  verb->callback([&] { status = bench(options); });
}

int main_of(int argc, char** argv) {
  CLI::App app(kAbout, "dsattn");
  app.footer(kExamples);
  app.require_subcommand(1);
  int status = kPass;
  GenOptions gen_options;
  gen_options.common.backend = "ref";  // what a file says must not depend on the machine
  RunOptions run_options;
  VerifyOptions verify_options;
  BenchOptions bench_options;
  Common info_options;
  add_gen(app, gen_options, status);
  add_run(app, run_options, status);
  add_verify(app, verify_options, status);
  add_bench(app, bench_options, status);
  CLI::App* info_verb = app.add_subcommand("info", "Backends, instruction set and threads");
  add_json(*info_verb, info_options);
  info_verb->callback([&] { status = info(info_options); });
  add_demo(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kPass : kUsage;
  }
  return status;
}

}  // namespace
}  // namespace dsattn::cli

int main(int argc, char** argv) { return dsattn::cli::main_of(argc, argv); }
