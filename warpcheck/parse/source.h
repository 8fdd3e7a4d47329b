// Source text, spans in it, and diagnostics that quote it with a caret.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace warpcheck {

/// A range of bytes in a source file.
struct Span {
  std::uint32_t offset = 0;
  std::uint32_t length = 0;
};

struct LineColumn {
  std::uint32_t line = 1;  ///< from 1
  std::uint32_t column = 1;
};

/// The text of one PTX file; immutable, so that names may point into it.
class SourceFile {
 public:
  SourceFile(std::string name, std::string text);
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;

  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }
  std::string_view text(Span span) const { return text().substr(span.offset, span.length); }
  LineColumn position(std::uint32_t offset) const;
  std::string_view line(std::uint32_t number) const;  ///< without its end of line

 private:
  std::string name_;
  std::string text_;
  std::vector<std::uint32_t> line_starts_;
};

using SourcePtr = std::shared_ptr<const SourceFile>;

struct Diagnostic {
  Span span;
  std::string message;
};

/// "k.ptx:12:5: error: message", the line, and a caret below the span.
std::string to_string(const SourceFile& source, const Diagnostic& diagnostic);

/// Why a file could not be read: the first diagnostics, in order of appearance.
struct Errors {
  SourcePtr source;
  std::vector<Diagnostic> diagnostics;
  std::string to_string() const;
};

template <class T>
using ParseResult = tl::expected<T, Errors>;

/// Limits that keep hostile input from costing more than its size.
struct ParseLimits {
  std::size_t max_bytes = std::size_t{256} << 20;
  int max_depth = 200;                     ///< nested scopes, parentheses, braces
  std::size_t max_errors = 20;             ///< reading stops after so many
  std::uint32_t max_registers = 1u << 20;  ///< per function
};

}  // namespace warpcheck
