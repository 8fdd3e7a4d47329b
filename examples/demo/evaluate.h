// What is measured on the held-out text: the loss, and how much of attention's probability the
// indexer's choice of keys holds.
#pragma once

#include "model.h"
#include "text.h"

namespace dsattn::demo {

/// Mean loss over the first `batches` batches of the held-out text (all of them, if fewer).
Result<double> held_out_loss(Model& model, Params& params, const Text& text, int64_t batches,
                             Mode mode);

/// Attention probability (summed over heads, over all causal keys) that k keys hold, averaged over
/// the layers and over the queries that see more than k keys.
struct CapturedMass {
  double indexer = 0.0;  ///< the indexer's k keys
  double best = 0.0;     ///< the k keys with the largest probability
  double random = 0.0;   ///< k different keys drawn at random
  double recent = 0.0;   ///< the last k keys: what a sliding window would hold

  double indexer_share() const { return best > 0.0 ? indexer / best : 0.0; }
  double random_share() const { return best > 0.0 ? random / best : 0.0; }
  double recent_share() const { return best > 0.0 ? recent / best : 0.0; }
};

/// Measured on the first batch of the held-out text, each layer's input coming from `mode`.
Result<CapturedMass> captured_mass(Model& model, Params& params, const Text& text, Mode mode);

}  // namespace dsattn::demo
