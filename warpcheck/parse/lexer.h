// PTX text to tokens. A dotted word (".f32", ".shared::cta", ".2d") is one token: PTX uses the dot
// for directives, modifiers, types and vector components alike, and the parser knows which.
#pragma once

#include <string_view>
#include <vector>

#include "warpcheck/parse/source.h"

namespace warpcheck {

enum class TokenKind : std::uint8_t { kIdent, kDotted, kNumber, kString, kPunct, kBad, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  char punct = 0;  ///< of kPunct; '<' and '>' also begin "<<" and ">>"
  Span span;
};

/// All tokens, then one kEnd. A character or string PTX does not have becomes kBad.
std::vector<Token> tokenize(std::string_view text);

/// A literal or the value of a constant expression. Floats keep their bits: 0f and 0d forms do.
struct Constant {
  enum class Kind : std::uint8_t { kInt, kF32, kF64 };
  Kind kind = Kind::kInt;
  std::uint64_t bits = 0;
  bool operator==(const Constant&) const = default;
};

/// Reads the text of a kNumber token; false if it is malformed or does not fit 64 bits.
bool read_number(std::string_view text, Constant& out);

}  // namespace warpcheck
