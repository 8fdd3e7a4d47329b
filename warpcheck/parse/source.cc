#include "warpcheck/parse/source.h"

#include <fmt/format.h>

#include <algorithm>

namespace warpcheck {

SourceFile::SourceFile(std::string name, std::string text)
    : name_(std::move(name)), text_(std::move(text)), line_starts_{0} {
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') line_starts_.push_back(static_cast<std::uint32_t>(i + 1));
  }
}

LineColumn SourceFile::position(std::uint32_t offset) const {
  const auto after = std::ranges::upper_bound(line_starts_, offset);
  const auto index = static_cast<std::uint32_t>(after - line_starts_.begin()) - 1;
  return {index + 1, offset - line_starts_[index] + 1};
}

std::string_view SourceFile::line(std::uint32_t number) const {
  if (number == 0 || number > line_starts_.size()) return {};
  const std::size_t begin = line_starts_[number - 1];
  std::size_t end = number < line_starts_.size() ? line_starts_[number] - 1 : text_.size();
  if (end > begin && text_[end - 1] == '\r') --end;
  return text().substr(begin, end - begin);
}

std::string to_string(const SourceFile& source, const Diagnostic& diagnostic) {
  // Lines may be megabytes long: show a window around the span.
  constexpr std::size_t kBefore = 60;
  constexpr std::size_t kWindow = 100;
  const LineColumn at = source.position(diagnostic.span.offset);
  const std::string_view whole = source.line(at.line);
  const std::size_t column = std::min<std::size_t>(at.column - 1, whole.size());
  const std::size_t begin = column > kBefore ? column - kBefore : 0;
  std::string shown(whole.substr(begin, kWindow));
  std::string margin = shown.substr(0, column - begin);
  const auto printable = [](char c) { return static_cast<unsigned char>(c) >= 32 && c != 127; };
  for (char& c : margin) c = c == '\t' ? '\t' : ' ';
  for (char& c : shown) c = c == '\t' || printable(c) ? c : '?';
  const std::size_t room = shown.size() - (column - begin);
  const std::size_t length = std::min<std::size_t>(diagnostic.span.length, room);
  std::string marker = "^";
  if (length > 1) marker.append(length - 1, '~');
  return fmt::format("{}:{}:{}: error: {}\n  {}\n  {}{}\n", source.name(), at.line, at.column,
                     diagnostic.message, shown, margin, marker);
}

std::string Errors::to_string() const {
  std::string out;
  for (const Diagnostic& each : diagnostics) out += warpcheck::to_string(*source, each);
  return out;
}

}  // namespace warpcheck
