// What the demo tells: progress, the verdict on its four targets, the summary as JSON, the plot.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "text.h"
#include "train.h"

namespace dsattn::demo {

inline constexpr double kLossTarget = 1.02;      ///< sparse loss over dense loss, at most
inline constexpr double kCapturedTarget = 0.90;  ///< of the best keys' mass, at least
inline constexpr double kRandomTarget = 0.75;    ///< random keys over the indexer's, at most

/// One target, judged.
struct Verdict {
  std::string text;
  bool met = false;
};

std::vector<Verdict> judge(const TrainResult& result, double bigram_entropy);

/// Prints progress: one live line on a terminal, a line now and then elsewhere.
class ProgressPrinter {
 public:
  ProgressPrinter(std::FILE* stream, int64_t steps);
  void show(const Progress& progress);

 private:
  std::FILE* stream_;
  int64_t steps_;
  bool terminal_;
};

std::string describe(const TrainConfig& config, const Text& text, int64_t parameters);
std::string summary(const TrainResult& result, const Text& text,
                    const std::vector<Verdict>& verdicts);
std::string to_json(const TrainConfig& config, const TrainResult& result, const Text& text,
                    const std::vector<Verdict>& verdicts, int64_t parameters);
std::string to_svg(const TrainConfig& config, const TrainResult& result, const Text& text);

}  // namespace dsattn::demo
