// A small writer of line plots as SVG: panels one above the other, each with axes, curves, a legend
// and dashed reference lines.
#pragma once

#include <string>
#include <vector>

#include "train.h"

namespace dsattn::demo {

struct Curve {
  std::string name;
  std::string color;
  const Series* series = nullptr;  ///< must outlive the call
  bool dashed = false;
};

struct Reference {
  std::string name;
  double value = 0.0;
};

struct Panel {
  std::string title;
  std::string y_label;
  double low = 0.0;  ///< the y axis
  double high = 1.0;
  std::vector<Curve> curves;
  std::vector<Reference> references;
};

/// The document; x runs over steps, 0 to `steps`, with a mark where sparse attention starts.
std::string plot_svg(const std::vector<Panel>& panels, int64_t steps, int64_t sparse_from);

}  // namespace dsattn::demo
