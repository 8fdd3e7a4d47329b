// The text: real prose that every Debian carries (the licences in /usr/share/common-licenses), or a
// file of the user's. Versions of one licence repeat each other, so paragraphs that mostly repeat
// earlier ones are dropped before the split; what is held out then has no near copy in training.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dsattn/result.h"
#include "random.h"

namespace dsattn::demo {

struct Text {
  std::vector<uint8_t> train;
  std::vector<uint8_t> held_out;
  std::string source;           ///< where it came from
  int64_t dropped_bytes = 0;    ///< of repeated paragraphs
  double bigram_entropy = 0.0;  ///< nats per byte of the held-out text
};

/// Reads `path`, or the licences if it is empty. Errors: kIo; kInvalidValue (too little text for
/// windows of `context` bytes).
Result<Text> load_text(const std::string& path, int64_t context);

/// Splits a text as load_text does.
Text split_text(std::string_view content);

/// Cross-entropy, in nats per byte, of the held-out text under a bigram model of the training text,
/// smoothed towards single bytes by the amount that suits the held-out text best.
double bigram_entropy(std::span<const uint8_t> train, std::span<const uint8_t> held_out);

/// Flattened sequences and, one byte on, what follows each byte.
struct Batch {
  std::vector<uint8_t> tokens;
  std::vector<uint8_t> targets;
};

/// Windows of the training text at random places.
Batch random_batch(const Text& text, Random& random, int64_t context, int64_t sequences);

/// The `index`-th batch of consecutive held-out windows; empty when the text does not fill it.
Batch held_out_batch(const Text& text, int64_t index, int64_t context, int64_t sequences);

}  // namespace dsattn::demo
