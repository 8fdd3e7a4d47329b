// A Form is one row of instructions.def, compiled: its opcode words, its modifier groups in order
// and its operands. Next: match.h finds the forms that an opcode with modifiers may mean.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warpcheck/isa/types.h"

namespace warpcheck {

enum class FormId : std::uint16_t {
#define PTX_FORM(id, opcode, mods, operands, isa, target, section, family) id,
#include "warpcheck/isa/instructions.def"
#undef PTX_FORM
  kCount
};

/// What executes an instruction; exec has one file per family.
enum class Family : std::uint8_t {
  kInteger,
  kFloat,
  kHalf,
  kCompare,
  kLogic,
  kMove,
  kConvert,
  kMemory,
  kMultimem,
  kAtomic,
  kWarp,
  kBarrier,
  kFence,
  kMbarrier,
  kAsyncCopy,
  kBulkCopy,
  kTensorCopy,
  kMatrix,
  kWgmma,
  kTcgen05,
  kControl,
  kMisc,
};

std::string_view to_string(Family family);

/// A shape a row allows; `any_n` stands for every multiple of 8 up to 256.
struct ShapePattern {
  MatrixShape shape;
  bool any_n = false;
  bool accepts(const MatrixShape& candidate) const;
};

/// Parses "m64n128k16" or "m8n8"; with `*` as n when any_n is given.
std::optional<ShapePattern> parse_shape(std::string_view word);

/// One modifier group: exactly one of the three lists is filled.
struct ModGroup {
  Group group = Group::kCount;
  bool optional = false;
  int type_slot = -1;  ///< 0..3, or 4 for the scale type
  std::vector<Mod> values;
  std::vector<Type> types;
  std::vector<ShapePattern> shapes;
};

enum class Role : std::uint8_t {
  kDst,
  kDstPair,
  kInOut,
  kSrc,
  kImm,
  kPred,
  kAddress,
  kTensorAddress,
  kLabel,
  kFunction
};

enum class Arity : std::int8_t { kScalar = 0, kAnyVector = -1, kFollowsVec = -2 };

/// One operand position of a form.
struct OperandSpec {
  Role role = Role::kSrc;
  Type type = Type::kNone;  ///< fixed type, or kNone: use type_slot
  int type_slot = 0;
  bool doubled = false;  ///< twice the width of the slot's type
  bool wider = false;    ///< wider registers are accepted
  bool optional = false;
  int length = 0;                  ///< > 0: vector of that length; else an Arity
  std::optional<Group> only_with;  ///< present only when the group is

  /// The type this position has under `mods`; kAny if it has no type.
  Type resolve(const Modifiers& mods) const;
};

struct Form {
  FormId id = FormId::kCount;
  std::string_view name, opcode, isa, target, section;
  Family family = Family::kMisc;
  std::vector<std::string_view> opcode_words;
  std::vector<ModGroup> groups;
  std::vector<OperandSpec> operands;
};

/// Every form, in the order of FormId.
std::span<const Form> all_forms();
const Form& form(FormId id);

/// Faults of the table itself (an unknown word or type): empty, or the build is broken.
std::span<const std::string> table_faults();

}  // namespace warpcheck
