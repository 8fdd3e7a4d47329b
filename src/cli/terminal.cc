#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace dsattn::cli {
namespace {

constexpr int kBarWidth = 30;

std::string coloured(std::string_view text, int colour) {
  if (!is_terminal(stdout)) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", colour, text);
}

}  // namespace

bool is_terminal(std::FILE* stream) {
  const char* term = std::getenv("TERM");
  const char* no_colour = std::getenv("NO_COLOR");
  if (term == nullptr || std::string_view(term) == "dumb") return false;
  if (no_colour != nullptr && *no_colour != '\0') return false;
  return ::isatty(::fileno(stream)) == 1;
}

std::string good(std::string_view text) { return coloured(text, 32); }
std::string bad(std::string_view text) { return coloured(text, 31); }

ProgressBar::ProgressBar(std::string label)
    : label_(std::move(label)), visible_(is_terminal(stderr)) {}

ProgressBar::~ProgressBar() {
  if (drawn_ >= 0) std::fputs("\r\x1b[K", stderr);
}

std::function<bool(double)> ProgressBar::callback() {
  if (!visible_) return {};
  return [this](double share) {
    draw(share);
    return true;
  };
}

void ProgressBar::draw(double share) {
  const int percent = static_cast<int>(100 * share);
  if (percent == drawn_) return;
  drawn_ = percent;
  const int filled = kBarWidth * percent / 100;
  fmt::print(stderr, "\r{} [{:#<{}}{:<{}}] {:3} %", label_, "", filled, "", kBarWidth - filled,
             percent);
  std::fflush(stderr);
}

}  // namespace dsattn::cli
