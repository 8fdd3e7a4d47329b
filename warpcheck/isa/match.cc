#include "warpcheck/isa/match.h"

#include <algorithm>
#include <unordered_map>

namespace warpcheck {
namespace {

/// Stores `word` into `mods` if the group takes it.
bool take(const ModGroup& group, std::string_view word, Modifiers& mods) {
  if (group.type_slot >= 0) {
    const auto type = type_from(word);
    if (!type || std::ranges::find(group.types, *type) == group.types.end()) return false;
    if (group.type_slot == 4)
      mods.scale_type = *type;
    else
      mods.types[static_cast<std::size_t>(group.type_slot)] = *type;
    return true;
  }
  if (!group.shapes.empty()) {
    const auto shape = parse_shape(word);
    if (!shape || shape->any_n) return false;
    const auto fits = [&](const ShapePattern& p) { return p.accepts(shape->shape); };
    if (std::ranges::none_of(group.shapes, fits)) return false;
    mods.shape = shape->shape;
    return true;
  }
  const auto mod = mod_from(word);
  if (!mod || std::ranges::find(group.values, *mod) == group.values.end()) return false;
  mods[group.group] = *mod;
  return true;
}

/// Whether all words are consumed and every required group is filled; `consumed` says how far.
bool match_modifiers(const Form& form, std::span<const std::string_view> words, bool in_order,
                     Modifiers& mods, std::size_t& consumed) {
  std::vector<bool> filled(form.groups.size());
  std::size_t next = 0;
  for (consumed = 0; consumed < words.size(); ++consumed) {
    std::size_t at = in_order ? next : 0;
    bool taken = false;
    for (; at < form.groups.size() && !taken; ++at) {
      if (filled[at]) continue;
      taken = take(form.groups[at], words[consumed], mods);
      if (taken)
        filled[at] = true;
      else if (in_order && !form.groups[at].optional)
        break;
    }
    if (!taken) return false;
    next = at;
  }
  for (std::size_t i = 0; i < form.groups.size(); ++i) {
    if (!filled[i] && !form.groups[i].optional) return false;
  }
  return true;
}

const std::vector<const Form*>& forms_of(std::string_view first_word) {
  static const auto index = [] {
    std::unordered_map<std::string_view, std::vector<const Form*>> out;
    for (const Form& form : all_forms()) out[form.opcode_words.front()].push_back(&form);
    return out;
  }();
  static const std::vector<const Form*> none;
  const auto it = index.find(first_word);
  return it == index.end() ? none : it->second;
}

}  // namespace

MatchResult match_forms(std::span<const std::string_view> words) {
  MatchResult out;
  if (words.empty()) return out;
  const auto& candidates = forms_of(words.front());
  for (const bool in_order : {true, false}) {
    for (const Form* form : candidates) {
      const std::size_t skip = form->opcode_words.size();
      if (words.size() < skip || !std::ranges::equal(form->opcode_words, words.first(skip))) {
        continue;
      }
      out.known_opcode = true;
      Modifiers mods;
      std::size_t consumed = 0;
      if (match_modifiers(*form, words.subspan(skip), in_order, mods, consumed)) {
        out.matches.push_back({form, mods});
      }
      out.bad_word = std::max(out.bad_word, skip + consumed);
    }
    if (!out.matches.empty()) break;
  }
  return out;
}

}  // namespace warpcheck
