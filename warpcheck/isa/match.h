// From the dotted words of an opcode ("ld", "global", "v4", "f32") to the forms they may mean.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "warpcheck/isa/form.h"

namespace warpcheck {

struct FormMatch {
  const Form* form = nullptr;
  Modifiers mods;
};

/// The answer of match_forms. Without matches: `known_opcode` tells a bad modifier from an unknown
/// instruction, `bad_word` is the first word no form of the opcode takes (or the word count: a
/// modifier is missing).
struct MatchResult {
  std::vector<FormMatch> matches;
  bool known_opcode = false;
  std::size_t bad_word = 0;
};

/// Several forms may match (register or descriptor operands): the operands decide between them.
/// Words out of PTX order are accepted, as ptxas does, if no form takes them in order.
MatchResult match_forms(std::span<const std::string_view> words);

}  // namespace warpcheck
