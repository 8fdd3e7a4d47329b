// The checked module: what the machine loads. Names are resolved to indices, registers are
// numbered densely per function, modifiers are enums, every instruction knows its source lines.
// Next: load.h makes one from text, disassemble.h prints it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "warpcheck/isa/form.h"
#include "warpcheck/parse/ast.h"

namespace warpcheck {

enum class Special : std::uint8_t {
#define PTX_SPECIAL(id, name, type, components) id,
#include "warpcheck/ir/specials.def"
#undef PTX_SPECIAL
};

/// An operand of a decoded instruction. `index` counts within the kind: a register of the
/// function, a symbol or function of the module, a label or branch-target list of the function.
struct Operand {
  enum class Kind : std::uint8_t {
    kRegister,
    kSpecial,
    kConstant,
    kSymbol,
    kFunction,
    kLabel,
    kTargets,
    kPrototype,
    kVector,
    kAddress,
    kSink
  };
  static constexpr std::uint32_t kNoRegister = UINT32_MAX;

  Kind kind = Kind::kSink;
  Kind base = Kind::kConstant;  ///< of a kAddress: kRegister, kSymbol or kConstant
  Type type = Type::kAny;       ///< what the instruction takes it for
  bool negated = false;
  bool has_coordinates = false;
  std::uint8_t component = 0;  ///< of a special register: 0..2 for x, y, z
  std::uint32_t index = 0;
  std::uint32_t pair = kNoRegister;  ///< the predicate of %r|%p
  Constant constant;
  std::int64_t offset = 0;        ///< of a kAddress or kSymbol
  std::vector<Operand> elements;  ///< of a kVector; the coordinates of a kAddress

  bool operator==(const Operand&) const = default;
};

/// One `.loc`: a line of the program's source, and where it was inlined.
struct Location {
  std::uint32_t file = 0, line = 0, column = 0;
  std::string function_name;     ///< of the inlined function, if known
  std::int32_t inlined_at = -1;  ///< index into Module::locations
};

struct DecodedInst {
  const Form* form = nullptr;  ///< null: unsupported, see Module::unsupported
  Modifiers mods;
  std::uint32_t guard = Operand::kNoRegister;
  bool guard_negated = false;
  std::vector<Operand> operands;  ///< as written; call: returns, callee, arguments, prototype?
  Span span;
  std::int32_t location = -1;  ///< index into Module::locations
};

/// A run of registers declared together, numbered first, first + 1, ...
struct RegisterRange {
  std::string name;  ///< unique in the function
  std::uint32_t first = 0;
  std::uint32_t count = 0;  ///< of names; `indexed` ones are name0, name1, ...
  bool indexed = false;
  int vector = 1;  ///< registers per name
  Type type = Type::kB32;
};

/// A variable in memory, of the module or of a function.
struct Symbol {
  std::string name;  ///< unique where it is visible
  Space space = Space::kGlobal;
  Linkage linkage = Linkage::kInternal;
  Type type = Type::kB8;
  int vector = 1;
  std::uint32_t align = 0;
  std::vector<std::uint64_t> dims;
  std::uint64_t bytes = 0;           ///< 0: unsized (extern shared memory)
  std::vector<ast::InitValue> init;  ///< symbols by name; names point into the source
  std::int32_t function = -1;        ///< its function, or -1
  bool is_register_param = false;
};

struct LaunchBounds {
  std::array<std::uint32_t, 3> max_threads{}, required_threads{}, required_cluster{};
  std::uint32_t min_ctas_per_sm = 0, max_registers = 0, max_cluster_rank = 0;
  bool explicit_cluster = false;
  bool no_return = false;
};

struct Label {
  std::string name;          ///< unique in the function
  std::uint32_t target = 0;  ///< index of an instruction; one past the last at the end
};

struct Targets {
  std::string name;
  std::vector<std::uint32_t> labels;
};

struct Prototype {
  std::string name;
  std::vector<Symbol> returns, params;
};

struct Function {
  std::string name;
  Linkage linkage = Linkage::kInternal;
  bool is_entry = false;
  bool has_body = false;
  LaunchBounds bounds;
  std::vector<std::uint32_t> params, returns;  ///< symbols
  std::vector<RegisterRange> ranges;
  std::vector<Type> registers;  ///< the type of each register
  std::vector<Label> labels;
  std::vector<Targets> targets;
  std::vector<Prototype> prototypes;
  std::vector<DecodedInst> code;

  std::string register_name(std::uint32_t index) const;
};

/// An instruction warpcheck does not know: the module loads, running it is "incomplete".
struct Unsupported {
  std::uint32_t function = 0, instruction = 0;
  Diagnostic diagnostic;
};

struct Module {
  SourcePtr source;
  int version_major = 0, version_minor = 0;
  std::vector<std::string> targets;
  int address_size = 64;
  std::vector<ast::File> files;
  std::vector<Symbol> symbols;
  std::vector<Function> functions;
  std::vector<Location> locations;
  std::vector<Unsupported> unsupported;

  /// The PTX line of an instruction, from 1.
  std::uint32_t ptx_line(const DecodedInst& inst) const;
  const Function* find(std::string_view function) const;
};

std::string_view to_string(Special special);
Type type_of(Special special);
int components(Special special);

}  // namespace warpcheck
