// What only people see: colours and a progress bar, both on terminals alone.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace dsattn::cli {

/// Whether the stream is a terminal that wants decoration (NO_COLOR and TERM=dumb do not).
bool is_terminal(std::FILE* stream);

/// The text in green or red if stdout is a terminal.
std::string good(std::string_view text);
std::string bad(std::string_view text);

/// A bar on stderr while it lives, erased at the end. Nothing if stderr is no terminal.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();

  /// For ExecContext::progress; empty if there is no bar to show.
  std::function<bool(double)> callback();

 private:
  void draw(double share);

  std::string label_;
  int drawn_ = -1;  // per cent on the screen
  bool visible_ = false;
};

}  // namespace dsattn::cli
