// The syntax tree: what the text says, unresolved. Names are views into the source. A function's
// body is one flat list with markers where scopes begin and end, so that no walk over it recurses.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "warpcheck/isa/types.h"
#include "warpcheck/parse/lexer.h"
#include "warpcheck/parse/source.h"

namespace warpcheck {

enum class Space : std::uint8_t { kReg, kGlobal, kShared, kConst, kLocal, kParam, kNone };
enum class Linkage : std::uint8_t { kInternal, kExtern, kVisible, kWeak, kCommon };

std::string_view to_string(Space space);
std::string_view to_string(Linkage linkage);

}  // namespace warpcheck

namespace warpcheck::ast {

struct Operand {
  enum class Kind : std::uint8_t { kName, kConstant, kVector, kAddress, kSink };
  Kind kind = Kind::kName;
  Span span;
  std::string_view name;       ///< kName, or the base of a kAddress; empty: the base is a constant
  std::string_view component;  ///< "x" of %tid.x
  std::string_view pair;       ///< "%p1" of %r1|%p1
  bool negated = false;        ///< !%p
  bool has_coordinates = false;
  Constant constant;              ///< kConstant, or the base of a kAddress
  std::int64_t offset = 0;        ///< name + offset
  std::vector<Operand> elements;  ///< of a vector, or the coordinates of an address
};

struct Guard {
  std::string_view name;
  bool negated = false;
  Span span;
};

struct Call {
  std::vector<Operand> returns, arguments;
  Operand callee;
  std::optional<Operand> prototype;
};

struct Instruction {
  std::optional<Guard> guard;
  Span opcode;  ///< with its modifiers
  std::vector<std::string_view> words;
  std::vector<Operand> operands;
  std::optional<Call> call;
};

struct Label {
  std::string_view name;
};

/// An element of an initialiser: a constant, or the address of a symbol.
struct InitValue {
  Constant constant;
  std::string_view symbol;
  bool generic = false;           ///< generic(symbol)
  std::uint8_t byte_mask = 0xff;  ///< 0xFF(symbol) forms keep the mask's byte index; 0xff: all
  std::int64_t offset = 0;
  Span span;
};

struct Variable {
  Space space = Space::kNone;
  Linkage linkage = Linkage::kInternal;
  std::string_view name;
  Span span;
  Type type = Type::kB8;
  int vector = 1;
  std::uint32_t align = 0;          ///< 0: the type's own
  std::uint32_t range = 0;          ///< N of %r<N>; 0: a single variable
  std::vector<std::uint64_t> dims;  ///< 0: unsized
  std::vector<InitValue> init;
  bool is_pointer = false;  ///< .ptr
  Space pointee = Space::kNone;
};

struct Loc {
  std::uint32_t file = 0, line = 0, column = 0;
  std::string_view function_name;  ///< a label in .debug_str
  bool inlined = false;
  std::uint32_t at_file = 0, at_line = 0, at_column = 0;
};

struct ScopeBegin {};
struct ScopeEnd {};

struct BranchTargets {
  std::string_view name;
  std::vector<Operand> labels;
};

struct Prototype {
  std::string_view name;
  std::vector<Variable> returns, params;
};

struct Pragma {
  std::string_view text;
};

struct Statement {
  Span span;
  std::variant<Instruction, Label, Variable, Loc, ScopeBegin, ScopeEnd, BranchTargets, Prototype,
               Pragma>
      node;
};

/// `.maxntid 128, 1, 1` and its like.
struct Tuning {
  std::string_view directive;  ///< without the dot
  std::vector<std::uint32_t> values;
  Span span;
};

struct Function {
  bool is_entry = false;
  bool has_body = false;
  Linkage linkage = Linkage::kInternal;
  std::string_view name;
  Span span;
  std::vector<Variable> returns, params;
  std::vector<Tuning> tuning;
  std::vector<Statement> body;
};

struct File {
  std::uint32_t index = 0;
  std::string path;
};

struct Alias {
  std::string_view name, target;
  Span span;
};

struct DebugString {
  std::string_view label;
  std::string text;
};

struct Module {
  SourcePtr source;
  int version_major = 0, version_minor = 0;
  std::vector<std::string_view> targets;  ///< sm_90a, texmode_unified, debug
  int address_size = 64;
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<File> files;
  std::vector<Alias> aliases;
  std::vector<DebugString> debug_strings;
};

}  // namespace warpcheck::ast
