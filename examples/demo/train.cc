// The training loop: shared dense phase, fork, both copies on the same batches.
#include "train.h"

#include <chrono>
#include <limits>

namespace dsattn::demo {
namespace {

double now() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(time).count();
}

// One run: two sets of weights, one set of activations.
class Run {
 public:
  Run(const TrainConfig& config, const Text& text)
      : config_(config),
        text_(text),
        model_(config.model),
        sparse_(Params::make(config.model, config.seed)),
        batches_(config.seed + 1),
        start_(now()) {}

  Result<TrainResult> train(const TrainHooks& hooks);

 private:
  bool forked() const { return step_ >= config_.dense_steps; }
  Result<StepLoss> update(Params& params, const Batch& batch, Mode mode);
  Result<void> step();
  Result<void> evaluate_curves();
  Result<void> evaluate_end();

  const TrainConfig& config_;
  const Text& text_;
  Model model_;
  Params sparse_, dense_;  // dense_ is empty until the fork
  Random batches_;
  double start_;
  int64_t step_ = 0;
  Progress progress_;
  TrainResult result_;
};

Result<StepLoss> Run::update(Params& params, const Batch& batch, Mode mode) {
  const Result<StepLoss> loss = model_.forward_backward(params, batch.tokens, batch.targets, mode);
  if (loss) adamw(config_.optimizer, step_, config_.steps, params, config_.model.threads);
  return loss;
}

Result<void> Run::step() {
  const ModelConfig& c = config_.model;
  const Batch batch = random_batch(text_, batches_, c.context, c.sequences);
  double dense_loss = 0.0;
  const double before = now();
  if (forked()) {
    const Result<StepLoss> dense = update(dense_, batch, Mode::kDense);
    if (!dense) return tl::unexpected(dense.error());
    dense_loss = dense->model;
  }
  const double between = now();
  const Result<StepLoss> sparse =
      update(sparse_, batch, forked() ? Mode::kSparse : Mode::kDenseWarmup);
  if (!sparse) return tl::unexpected(sparse.error());
  if (forked()) {
    result_.dense_step_seconds += between - before;
    result_.sparse_step_seconds += now() - between;
  } else {
    dense_loss = sparse->model;
  }
  progress_.step = step_ + 1;
  progress_.sparse = forked();
  progress_.dense_loss = dense_loss;
  progress_.sparse_loss = sparse->model;
  progress_.indexer_loss = sparse->indexer;
  result_.dense_train.add(step_, dense_loss);
  result_.sparse_train.add(step_, sparse->model);
  result_.indexer_loss.add(step_, sparse->indexer);
  return {};
}

Result<void> Run::evaluate_curves() {
  const Mode mode = forked() ? Mode::kSparse : Mode::kDense;
  const auto sparse = held_out_loss(model_, sparse_, text_, config_.curve_batches, mode);
  if (!sparse) return tl::unexpected(sparse.error());
  double dense_loss = *sparse;
  if (forked()) {
    const auto dense = held_out_loss(model_, dense_, text_, config_.curve_batches, Mode::kDense);
    if (!dense) return tl::unexpected(dense.error());
    dense_loss = *dense;
  }
  const Result<CapturedMass> mass = captured_mass(model_, sparse_, text_, mode);
  if (!mass) return tl::unexpected(mass.error());
  result_.dense_held_out.add(step_, dense_loss);
  result_.sparse_held_out.add(step_, *sparse);
  result_.indexer_share.add(step_, mass->indexer_share());
  result_.random_share.add(step_, mass->random_share());
  result_.recent_share.add(step_, mass->recent_share());
  progress_.indexer_share = mass->indexer_share();
  return {};
}

Result<void> Run::evaluate_end() {
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  const auto dense = held_out_loss(model_, dense_, text_, kAll, Mode::kDense);
  if (!dense) return tl::unexpected(dense.error());
  const auto sparse = held_out_loss(model_, sparse_, text_, kAll, Mode::kSparse);
  if (!sparse) return tl::unexpected(sparse.error());
  const Result<CapturedMass> mass = captured_mass(model_, sparse_, text_, Mode::kSparse);
  if (!mass) return tl::unexpected(mass.error());
  result_.dense_loss = *dense;
  result_.sparse_loss = *sparse;
  result_.mass = *mass;
  return {};
}

Result<TrainResult> Run::train(const TrainHooks& hooks) {
  const auto fork = [&] {
    if (dense_.layers.empty()) dense_ = sparse_;
  };
  while (step_ < config_.steps && !result_.stopped_early) {
    if (forked()) fork();
    if (step_ % config_.evaluate_every == 0) {
      if (auto done = evaluate_curves(); !done) return tl::unexpected(done.error());
    }
    if (auto done = step(); !done) return tl::unexpected(done.error());
    ++step_;
    progress_.seconds = now() - start_;
    hooks.progress(progress_);
    result_.stopped_early =
        step_ < config_.steps && config_.seconds > 0 && progress_.seconds > config_.seconds;
  }
  if (auto done = hooks.after_last_step(model_, sparse_, progress_.sparse); !done) {
    return tl::unexpected(done.error());
  }
  const auto both = static_cast<double>(std::max<int64_t>(1, step_ - config_.dense_steps));
  result_.dense_step_seconds /= both;
  result_.sparse_step_seconds /= both;
  fork();
  if (auto done = evaluate_curves(); !done) return tl::unexpected(done.error());
  if (auto done = evaluate_end(); !done) return tl::unexpected(done.error());
  result_.steps_done = step_;
  result_.seconds = now() - start_;
  return result_;
}

}  // namespace

Result<TrainResult> train(const TrainConfig& config, const Text& text, const TrainHooks& hooks) {
  return Run(config, text).train(hooks);
}

}  // namespace dsattn::demo
