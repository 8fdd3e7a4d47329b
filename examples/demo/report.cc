// Text, JSON and plot of a run.
#include "report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "svg.h"

namespace dsattn::demo {

std::vector<Verdict> judge(const TrainResult& r, double bigram_entropy) {
  const double ratio = r.sparse_loss / r.dense_loss;
  const double captured = r.mass.indexer_share();
  const double random = r.mass.random_share();
  return {
      {fmt::format(
           "sparse attention within 2 % of dense: {:.4f} against {:.4f} nats/byte ({:+.2f} %)",
           r.sparse_loss, r.dense_loss, 100.0 * (ratio - 1.0)),
       ratio <= kLossTarget},
      {fmt::format("below the text's bigram entropy: {:.4f} against {:.4f} nats/byte",
                   r.sparse_loss, bigram_entropy),
       r.sparse_loss < bigram_entropy},
      {fmt::format("the indexer's keys hold at least 90 % of what the best keys hold: {:.1f} %",
                   100.0 * captured),
       captured >= kCapturedTarget},
      {fmt::format("random keys hold clearly less: {:.1f} %", 100.0 * random),
       random <= kRandomTarget * captured},
  };
}

ProgressPrinter::ProgressPrinter(std::FILE* stream, int64_t steps)
    : stream_(stream), steps_(steps), terminal_(isatty(fileno(stream)) != 0) {}

void ProgressPrinter::show(const Progress& p) {
  const bool last = p.step == steps_;
  const int64_t every = std::max<int64_t>(1, steps_ / 20);
  if (!terminal_ && p.step % every != 0 && p.step != 1 && !last) return;
  fmt::print(stream_,
             "{}step {:>4}/{} {:<6} loss: sparse {:.3f} dense {:.3f} nats/byte, indexer KL {:.3f}, "
             "captured {:.1f} %, {:.0f} s{}",
             terminal_ ? "\r\x1b[K" : "", p.step, steps_, p.sparse ? "sparse" : "dense",
             p.sparse_loss, p.dense_loss, p.indexer_loss, 100.0 * p.indexer_share, p.seconds,
             terminal_ && !last ? "" : "\n");
  std::fflush(stream_);
}

std::string describe(const TrainConfig& config, const Text& text, int64_t parameters) {
  const ModelConfig& m = config.model;
  return fmt::format(
      "text: {}, {} bytes to train on, {} held out ({} dropped as repetitions)\n"
      "model: {:.2f} M parameters, {} layers of width {}, {} heads on a latent row of {} + {}, "
      "indexer of {} heads\n"
      "attention: context {}, top-{} keys per query, backend {}, {} threads\n"
      "plan: {} dense steps with indexer warm-up, then {} sparse steps beside a dense baseline\n",
      text.source, text.train.size(), text.held_out.size(), text.dropped_bytes,
      static_cast<double>(parameters) / 1e6, m.layers, m.width, m.heads, m.latent, m.rope,
      m.index_heads, m.context, m.top_k, to_string(m.backend), m.threads, config.dense_steps,
      config.steps - config.dense_steps);
}

std::string summary(const TrainResult& r, const Text& text, const std::vector<Verdict>& verdicts) {
  std::string out = fmt::format(
      "held-out loss: sparse {:.4f}, dense {:.4f}, bigram entropy {:.4f} nats/byte\n"
      "attention mass on the held-out text: indexer {:.4f}, best keys {:.4f}, random {:.4f}, "
      "last keys {:.4f}\n"
      "time: {:.0f} s; a dense step {:.0f} ms, a sparse step {:.0f} ms\n",
      r.sparse_loss, r.dense_loss, text.bigram_entropy, r.mass.indexer, r.mass.best, r.mass.random,
      r.mass.recent, r.seconds, 1e3 * r.dense_step_seconds, 1e3 * r.sparse_step_seconds);
  if (r.stopped_early) out += fmt::format("stopped by the time limit at step {}\n", r.steps_done);
  for (const Verdict& v : verdicts) out += fmt::format("{} {}\n", v.met ? "PASS" : "FAIL", v.text);
  return out;
}

std::string to_json(const TrainConfig& config, const TrainResult& r, const Text& text,
                    const std::vector<Verdict>& verdicts, int64_t parameters) {
  using Json = nlohmann::ordered_json;
  const auto series = [](const Series& s) { return Json{{"step", s.step}, {"value", s.value}}; };
  Json json;
  json["text"] = {{"source", text.source},
                  {"train_bytes", text.train.size()},
                  {"held_out_bytes", text.held_out.size()},
                  {"bigram_entropy", text.bigram_entropy}};
  json["model"] = {{"parameters", parameters},
                   {"layers", config.model.layers},
                   {"width", config.model.width},
                   {"heads", config.model.heads},
                   {"context", config.model.context},
                   {"top_k", config.model.top_k},
                   {"backend", to_string(config.model.backend)}};
  json["seed"] = config.seed;
  json["steps"] = r.steps_done;
  json["dense_steps"] = config.dense_steps;
  json["stopped_early"] = r.stopped_early;
  json["seconds"] = r.seconds;
  json["dense_step_seconds"] = r.dense_step_seconds;
  json["sparse_step_seconds"] = r.sparse_step_seconds;
  json["held_out_loss"] = {{"sparse", r.sparse_loss}, {"dense", r.dense_loss}};
  json["attention_mass"] = {{"indexer", r.mass.indexer},
                            {"best", r.mass.best},
                            {"random", r.mass.random},
                            {"recent", r.mass.recent}};
  json["targets"] = Json::array();
  bool all_met = true;
  for (const Verdict& v : verdicts) {
    json["targets"].push_back({{"text", v.text}, {"met", v.met}});
    all_met = all_met && v.met;
  }
  json["pass"] = all_met;
  json["curves"] = {
      {"dense_train", series(r.dense_train)},       {"sparse_train", series(r.sparse_train)},
      {"dense_held_out", series(r.dense_held_out)}, {"sparse_held_out", series(r.sparse_held_out)},
      {"indexer_loss", series(r.indexer_loss)},     {"indexer_share", series(r.indexer_share)},
      {"random_share", series(r.random_share)},     {"recent_share", series(r.recent_share)}};
  return json.dump(2) + "\n";
}

std::string to_svg(const TrainConfig& config, const TrainResult& r, const Text& text) {
  Panel loss{"Loss", "nats per byte", 1.0, 3.5, {}, {}};
  loss.curves = {{"dense, training", "#9ecae1", &r.dense_train, false},
                 {"sparse, training", "#fdae6b", &r.sparse_train, true},
                 {"dense, held out", "#08519c", &r.dense_held_out, false},
                 {"sparse, held out", "#d94801", &r.sparse_held_out, true}};
  loss.references = {{"bigram entropy", text.bigram_entropy}};
  Panel mass{"Attention mass of k keys", "share of the best k keys' mass", 0.0, 1.0, {}, {}};
  mass.curves = {{"the indexer's keys", "#238b45", &r.indexer_share, false},
                 {"the last k keys", "#74a9cf", &r.recent_share, false},
                 {"random keys", "#888888", &r.random_share, false}};
  mass.references = {{"target", kCapturedTarget}};
  return plot_svg({loss, mass}, r.steps_done, std::min(config.dense_steps, r.steps_done));
}

}  // namespace dsattn::demo
