#include "warpcheck/isa/types.h"

#include <unordered_map>

namespace warpcheck {
namespace {

struct TypeRow {
  std::string_view word;
  int bits;
  TypeClass cls;
};

constexpr TypeRow kTypes[] = {
    {"", 0, TypeClass::kNone},
#define PTX_TYPE(id, word, bits, cls) {word, bits, TypeClass::cls},
#include "warpcheck/isa/types.def"
#undef PTX_TYPE
};

constexpr std::string_view kMods[] = {
    "",
#define PTX_MOD(id, word) word,
#include "warpcheck/isa/modifiers.def"
#undef PTX_MOD
};

constexpr std::string_view kGroups[] = {
#define PTX_GROUP(id, word) word,
#include "warpcheck/isa/groups.def"
#undef PTX_GROUP
};

template <class Enum, class Table>
std::unordered_map<std::string_view, Enum> index_words(const Table& table, std::size_t first) {
  std::unordered_map<std::string_view, Enum> index;
  for (std::size_t i = first; i < std::size(table); ++i) {
    if constexpr (requires { table[i].word; }) {
      index.emplace(table[i].word, static_cast<Enum>(i));
    } else {
      index.emplace(table[i], static_cast<Enum>(i));
    }
  }
  return index;
}

template <class Enum>
std::optional<Enum> look_up(const std::unordered_map<std::string_view, Enum>& index,
                            std::string_view word) {
  const auto it = index.find(word);
  if (it == index.end()) return std::nullopt;
  return it->second;
}

const TypeRow& row(Type type) { return kTypes[static_cast<std::size_t>(type)]; }

}  // namespace

std::string_view to_string(Type type) { return row(type).word; }
int bit_width(Type type) { return row(type).bits; }
TypeClass class_of(Type type) { return row(type).cls; }

std::optional<Type> type_from(std::string_view word) {
  static const auto index = index_words<Type>(kTypes, 1);
  return look_up(index, word);
}

bool register_fits(Type reg, Type want, bool wider) {
  if (want == Type::kAny) return true;
  const bool is_pred = reg == Type::kPred;
  if (is_pred || want == Type::kPred) return is_pred && want == Type::kPred;
  const int have = bit_width(reg);
  const int need = bit_width(want);
  // There are no 8-bit and smaller arithmetic registers: such values live in wider ones.
  const bool width_fits = have == need || (wider && have > need) || (need < 16 && have > need);
  if (!width_fits) return false;
  if (have > need) return true;
  const TypeClass a = class_of(reg);
  const TypeClass b = class_of(want);
  if (a == TypeClass::kBits || b == TypeClass::kBits || b == TypeClass::kPacked) return true;
  if (a == TypeClass::kPacked) return b != TypeClass::kFloat;
  return a == b;
}

std::string_view to_string(Mod mod) { return kMods[static_cast<std::size_t>(mod)]; }

std::optional<Mod> mod_from(std::string_view word) {
  static const auto index = index_words<Mod>(kMods, 1);
  return look_up(index, word);
}

std::string_view to_string(Group group) { return kGroups[static_cast<std::size_t>(group)]; }

std::optional<Group> group_from(std::string_view word) {
  static const auto index = index_words<Group>(kGroups, 0);
  return look_up(index, word);
}

int vector_length(const Modifiers& mods) {
  switch (mods[Group::kVec]) {
    case Mod::kV2:
      return 2;
    case Mod::kV4:
      return 4;
    case Mod::kV8:
      return 8;
    default:
      return 1;
  }
}

}  // namespace warpcheck
