// Binds one function's body: two walks over its flat statements with a stack of scopes. The first
// finds labels (they may be used before they appear), the second everything else.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "warpcheck/ir/module.h"
#include "warpcheck/isa/match.h"

namespace warpcheck {

/// What a name means.
struct Entity {
  enum class Kind : std::uint8_t { kRange, kSymbol, kFunction, kLabel, kTargets, kPrototype };
  Kind kind = Kind::kSymbol;
  std::uint32_t index = 0;
};

using Names = std::unordered_map<std::string_view, Entity>;

/// Shared by the binders of all functions of a module.
struct BindContext {
  Module& module;
  const ast::Module& tree;
  const Names& globals;
  const ParseLimits& limits;
  std::vector<Diagnostic>& errors;
};

/// The symbol a declaration makes; its name is not yet made unique.
Symbol make_symbol(const ast::Variable& variable);

class FunctionBinder {
 public:
  FunctionBinder(BindContext& context, std::uint32_t index, const ast::Function& tree);
  void run();

 private:
  struct Scope {
    Names names;
    Names prefixes;  ///< "%r" of %r<N>
  };

  void collect_labels();
  void declare_parameters();
  void declare(const ast::Variable& variable);
  void declare_registers(const ast::Variable& variable, bool indexed);
  bool add_name(Names& names, std::string_view name, Entity entity, Span span);
  std::string unique(std::string_view name);
  void locate(const ast::Loc& loc);
  void add_targets(const ast::BranchTargets& node);
  void add_prototype(const ast::Prototype& node);

  void instruction(const ast::Statement& statement, const ast::Instruction& node);
  bool guard(const ast::Instruction& node, DecodedInst& out);
  void unsupported(const ast::Instruction& node, const MatchResult& match);
  void choose_form(const ast::Instruction& node, const MatchResult& match, DecodedInst& out);
  bool resolve_call(const ast::Call& call, std::vector<Operand>& out);

  bool resolve(const ast::Operand& node, Operand& out);
  bool resolve_name(const ast::Operand& node, Operand& out);
  bool resolve_address(const ast::Operand& node, Operand& out);
  bool resolve_register(std::string_view name, std::string_view component, Span span, Operand& out);
  bool special(const ast::Operand& node, Operand& out);
  bool range_entity(std::string_view name, std::uint32_t& reg, const RegisterRange*& range) const;
  const Entity* find(std::string_view name) const;
  bool error(Span span, std::string message);

  BindContext& context_;
  std::uint32_t index_;
  const ast::Function& tree_;
  Function& function_;
  std::vector<Names> label_scopes_;  ///< by order of appearance
  std::vector<std::size_t> label_stack_;
  std::vector<Scope> scopes_;
  std::unordered_set<std::string> used_names_;
  std::int32_t location_ = -1;
  std::size_t first_location_ = 0;
  std::unordered_map<std::uint64_t, std::int32_t> latest_location_;
};

}  // namespace warpcheck
