// Types, modifier words and modifier groups of PTX as enums, made from three short tables.
// Next: form.h, which compiles instructions.def into forms over these.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace warpcheck {

/// A PTX type. kAny appears in signatures only.
enum class Type : std::uint8_t {
  kNone,
#define PTX_TYPE(id, word, bits, cls) id,
#include "warpcheck/isa/types.def"
#undef PTX_TYPE
};

/// How values of a type may meet registers of another type of equal width (PTX ISA 9.4).
enum class TypeClass : std::uint8_t { kNone, kBits, kInteger, kFloat, kPacked, kPredicate };

std::string_view to_string(Type type);  ///< "f32", without the dot
std::optional<Type> type_from(std::string_view word);
int bit_width(Type type);
TypeClass class_of(Type type);

/// Whether a register declared `reg` may hold an operand of type `want`; `wider` allows more bits,
/// as ld, st and cvt do.
bool register_fits(Type reg, Type want, bool wider);

/// A modifier word, e.g. kAcquire for ".acquire". kNone: the group is absent.
enum class Mod : std::uint16_t {
  kNone,
#define PTX_MOD(id, word) id,
#include "warpcheck/isa/modifiers.def"
#undef PTX_MOD
};

std::string_view to_string(Mod mod);
std::optional<Mod> mod_from(std::string_view word);

/// What a modifier decides: its slot in Modifiers.
enum class Group : std::uint8_t {
#define PTX_GROUP(id, word) id,
#include "warpcheck/isa/groups.def"
#undef PTX_GROUP
  kCount
};

std::string_view to_string(Group group);
std::optional<Group> group_from(std::string_view word);

/// m64n128k16, or m8n8 with k = 0.
struct MatrixShape {
  std::uint16_t m = 0, n = 0, k = 0;
  bool operator==(const MatrixShape&) const = default;
};

/// The decoded modifiers of one instruction: one value per group, types apart.
struct Modifiers {
  std::array<Mod, static_cast<std::size_t>(Group::kCount)> values{};
  std::array<Type, 4> types{};  ///< in textual order: .type, .type2, ...
  Type scale_type = Type::kNone;
  MatrixShape shape;

  Mod operator[](Group group) const { return values[static_cast<std::size_t>(group)]; }
  Mod& operator[](Group group) { return values[static_cast<std::size_t>(group)]; }
  bool has(Group group) const { return (*this)[group] != Mod::kNone; }
  bool operator==(const Modifiers&) const = default;
};

/// The number of elements a `.v2` `.v4` `.v8` asks for; 1 without.
int vector_length(const Modifiers& mods);

}  // namespace warpcheck
