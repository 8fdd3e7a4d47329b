// Axes, curves, legends and reference lines as SVG elements.
#include "svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace dsattn::demo {
namespace {

constexpr double kWidth = 860;
constexpr double kPanelHeight = 330;
constexpr double kLeft = 70;
constexpr double kRight = 190;  // room for the legend
constexpr double kTop = 40;
constexpr double kBottom = 45;

// Where a panel's values lie on the page.
struct Frame {
  double top = 0;
  double low = 0;
  double high = 1;
  double steps = 1;

  double x(double step) const { return kLeft + (kWidth - kLeft - kRight) * step / steps; }
  double y(double value) const {
    const double share = (std::clamp(value, low, high) - low) / (high - low);
    return top + kTop + (kPanelHeight - kTop - kBottom) * (1.0 - share);
  }
};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

void text(std::string& svg, double x, double y, const char* anchor, const std::string& content) {
  fmt::format_to(std::back_inserter(svg),
                 "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                 escaped(content));
}

void line(std::string& svg, double x0, double y0, double x1, double y1, const char* style) {
  fmt::format_to(std::back_inserter(svg),
                 "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x0, y0, x1,
                 y1, style);
}

void axes(std::string& svg, const Frame& frame, const Panel& panel) {
  constexpr int kTicks = 5;
  constexpr const char* kGrid = "stroke=\"#ddd\"";
  for (int i = 0; i <= kTicks; ++i) {
    const double share = static_cast<double>(i) / kTicks;
    const double value = panel.low + share * (panel.high - panel.low);
    line(svg, kLeft, frame.y(value), kWidth - kRight, frame.y(value), kGrid);
    text(svg, kLeft - 8, frame.y(value) + 4, "end", fmt::format("{:.2f}", value));
    const double step = std::round(share * frame.steps);
    text(svg, frame.x(step), frame.y(panel.low) + 18, "middle", fmt::format("{:.0f}", step));
  }
  text(svg, kLeft, frame.top + 24, "start", panel.title + ", " + panel.y_label);
  text(svg, frame.x(frame.steps / 2), frame.y(panel.low) + 36, "middle", "step");
}

void curve(std::string& svg, const Frame& frame, const Curve& c, double legend_y) {
  const std::string style = fmt::format("stroke=\"{}\" stroke-width=\"1.6\" fill=\"none\"{}",
                                        c.color, c.dashed ? " stroke-dasharray=\"5 4\"" : "");
  svg += "<polyline " + style + " points=\"";
  for (size_t i = 0; i < c.series->step.size(); ++i) {
    fmt::format_to(std::back_inserter(svg), "{:.1f},{:.1f} ", frame.x(c.series->step[i]),
                   frame.y(c.series->value[i]));
  }
  svg += "\"/>\n";
  const double x = kWidth - kRight + 12;
  line(svg, x, legend_y - 4, x + 24, legend_y - 4, style.c_str());
  text(svg, x + 30, legend_y, "start", c.name);
}

}  // namespace

std::string plot_svg(const std::vector<Panel>& panels, int64_t steps, int64_t sparse_from) {
  const double height = kPanelHeight * static_cast<double>(panels.size());
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" "
      "height=\"{:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kWidth, height, kWidth, height);
  double top = 0;
  for (const Panel& panel : panels) {
    const Frame frame{top, panel.low, panel.high, static_cast<double>(std::max<int64_t>(1, steps))};
    axes(svg, frame, panel);
    const double fork = frame.x(static_cast<double>(sparse_from));
    line(svg, fork, frame.y(panel.high), fork, frame.y(panel.low), "stroke=\"#999\"");
    text(svg, fork + 4, frame.y(panel.high) + 12, "start", "sparse from here");
    double legend_y = top + kTop + 12;
    for (const Curve& c : panel.curves) {
      curve(svg, frame, c, legend_y);
      legend_y += 20;
    }
    for (const Reference& reference : panel.references) {
      const double y = frame.y(reference.value);
      line(svg, kLeft, y, kWidth - kRight, y, "stroke=\"#444\" stroke-dasharray=\"2 3\"");
      text(svg, kWidth - kRight + 6, y + 4, "start", reference.name);
    }
    top += kPanelHeight;
  }
  return svg + "</svg>\n";
}

}  // namespace dsattn::demo
