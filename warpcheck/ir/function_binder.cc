#include "warpcheck/ir/function_binder.h"

#include <fmt/format.h>

#include <algorithm>

#include "warpcheck/ir/check_operands.h"

namespace warpcheck {

FunctionBinder::FunctionBinder(BindContext& context, std::uint32_t index, const ast::Function& tree)
    : context_(context),
      index_(index),
      tree_(tree),
      function_(context.module.functions[index]),
      scopes_(1),
      first_location_(context.module.locations.size()) {}

bool FunctionBinder::error(Span span, std::string message) {
  if (context_.errors.size() < context_.limits.max_errors) {
    context_.errors.push_back({span, std::move(message)});
  }
  return false;
}

void FunctionBinder::run() {
  declare_parameters();
  collect_labels();
  label_stack_ = {0};
  std::size_t next_scope = 1;
  for (const ast::Statement& statement : tree_.body) {
    if (context_.errors.size() >= context_.limits.max_errors) return;
    if (std::holds_alternative<ast::ScopeBegin>(statement.node)) {
      scopes_.emplace_back();
      label_stack_.push_back(next_scope++);
    } else if (std::holds_alternative<ast::ScopeEnd>(statement.node)) {
      scopes_.pop_back();
      label_stack_.pop_back();
    } else if (const auto* label = std::get_if<ast::Label>(&statement.node)) {
      const Entity entity = label_scopes_[label_stack_.back()].at(label->name);
      function_.labels[entity.index].target = static_cast<std::uint32_t>(function_.code.size());
    } else if (const auto* variable = std::get_if<ast::Variable>(&statement.node)) {
      declare(*variable);
    } else if (const auto* loc = std::get_if<ast::Loc>(&statement.node)) {
      locate(*loc);
    } else if (const auto* targets = std::get_if<ast::BranchTargets>(&statement.node)) {
      add_targets(*targets);
    } else if (const auto* prototype = std::get_if<ast::Prototype>(&statement.node)) {
      add_prototype(*prototype);
    } else if (const auto* node = std::get_if<ast::Instruction>(&statement.node)) {
      instruction(statement, *node);
    }
  }
}

void FunctionBinder::collect_labels() {
  std::vector<std::size_t> stack{0};
  label_scopes_.emplace_back();
  for (const ast::Statement& statement : tree_.body) {
    if (std::holds_alternative<ast::ScopeBegin>(statement.node)) {
      stack.push_back(label_scopes_.size());
      label_scopes_.emplace_back();
    } else if (std::holds_alternative<ast::ScopeEnd>(statement.node)) {
      stack.pop_back();
    } else if (const auto* label = std::get_if<ast::Label>(&statement.node)) {
      const auto index = static_cast<std::uint32_t>(function_.labels.size());
      if (add_name(label_scopes_[stack.back()], label->name, {Entity::Kind::kLabel, index},
                   statement.span)) {
        function_.labels.push_back({unique(label->name), 0});
      }
    }
  }
}

void FunctionBinder::locate(const ast::Loc& loc) {
  const auto key = [](std::uint64_t file, std::uint64_t line, std::uint64_t column) {
    return file << 48 ^ line << 16 ^ column;
  };
  auto& all = context_.module.locations;
  Location out{loc.file, loc.line, loc.column, {}, -1};
  if (!loc.function_name.empty()) {
    for (const ast::DebugString& each : context_.tree.debug_strings) {
      if (each.label == loc.function_name) out.function_name = each.text;
    }
  }
  if (loc.inlined) {
    // The place of inlining continues the chain if it was itself announced by a .loc.
    const auto outer = key(loc.at_file, loc.at_line, loc.at_column);
    const auto [it, fresh] =
        latest_location_.try_emplace(outer, static_cast<std::int32_t>(all.size()));
    if (fresh) all.push_back({loc.at_file, loc.at_line, loc.at_column, {}, -1});
    out.inlined_at = it->second;
  }
  location_ = static_cast<std::int32_t>(all.size());
  latest_location_[key(loc.file, loc.line, loc.column)] = location_;
  all.push_back(std::move(out));
}

void FunctionBinder::add_targets(const ast::BranchTargets& node) {
  Targets out{unique(node.name), {}};
  for (const ast::Operand& each : node.labels) {
    const Entity* entity = find(each.name);
    const bool is_label = entity && entity->kind == Entity::Kind::kLabel;
    const bool is_function = entity && entity->kind == Entity::Kind::kFunction;
    if (!is_label && !is_function) {
      error(each.span, fmt::format("there is no label '{}' here", each.name));
      return;
    }
    out.labels.push_back(entity->index);
  }
  const auto index = static_cast<std::uint32_t>(function_.targets.size());
  add_name(scopes_.back().names, node.name, {Entity::Kind::kTargets, index}, {});
  function_.targets.push_back(std::move(out));
}

void FunctionBinder::add_prototype(const ast::Prototype& node) {
  Prototype out{unique(node.name), {}, {}};
  for (const auto& each : node.returns) out.returns.push_back(make_symbol(each));
  for (const auto& each : node.params) out.params.push_back(make_symbol(each));
  const auto index = static_cast<std::uint32_t>(function_.prototypes.size());
  add_name(scopes_.back().names, node.name, {Entity::Kind::kPrototype, index}, {});
  function_.prototypes.push_back(std::move(out));
}

void FunctionBinder::instruction(const ast::Statement& statement, const ast::Instruction& node) {
  DecodedInst out;
  out.span = statement.span;
  out.location = location_;
  if (!guard(node, out)) return;
  const MatchResult match = match_forms(node.words);
  if (match.matches.empty()) {
    unsupported(node, match);
    function_.code.push_back(std::move(out));
    return;
  }
  if (node.call) {
    if (!resolve_call(*node.call, out.operands)) return;
    out.form = match.matches.front().form;
    out.mods = match.matches.front().mods;
  } else {
    for (const ast::Operand& each : node.operands) {
      if (!resolve(each, out.operands.emplace_back())) return;
    }
    choose_form(node, match, out);
  }
  function_.code.push_back(std::move(out));
}

bool FunctionBinder::guard(const ast::Instruction& node, DecodedInst& out) {
  if (!node.guard) return true;
  Operand predicate;
  if (!resolve_register(node.guard->name, {}, node.guard->span, predicate)) return false;
  if (function_.registers[predicate.index] != Type::kPred) {
    return error(node.guard->span, "a guard must be a predicate register");
  }
  out.guard = predicate.index;
  out.guard_negated = node.guard->negated;
  return true;
}

void FunctionBinder::unsupported(const ast::Instruction& node, const MatchResult& match) {
  Diagnostic diagnostic{node.opcode, {}};
  if (!match.known_opcode) {
    diagnostic.message = fmt::format("unsupported instruction '{}'", fmt::join(node.words, "."));
  } else if (match.bad_word >= node.words.size()) {
    diagnostic.message =
        fmt::format("unsupported: '{}' lacks a modifier or type", fmt::join(node.words, "."));
  } else {
    const std::string_view word = node.words[match.bad_word];
    diagnostic.message = fmt::format("unsupported modifier '.{}'", word);
    const auto at = static_cast<std::uint32_t>(word.data() - context_.module.source->text().data());
    diagnostic.span = {at, static_cast<std::uint32_t>(word.size())};
  }
  const auto at = static_cast<std::uint32_t>(function_.code.size());
  context_.module.unsupported.push_back({index_, at, std::move(diagnostic)});
}

void FunctionBinder::choose_form(const ast::Instruction& node, const MatchResult& match,
                                 DecodedInst& out) {
  OperandFault worst;
  for (const FormMatch& each : match.matches) {
    const auto fits = check_operands(*each.form, each.mods, function_, out.operands);
    if (fits) {
      out.form = each.form;
      out.mods = each.mods;
      return;
    }
    if (worst.message.empty() || fits.error().position > worst.position) worst = fits.error();
  }
  const bool has_operand = worst.position < node.operands.size();
  error(has_operand ? node.operands[worst.position].span : node.opcode,
        fmt::format("{} (operand {} of {})", worst.message, worst.position + 1,
                    fmt::join(node.words, ".")));
}

bool FunctionBinder::resolve_call(const ast::Call& call, std::vector<Operand>& out) {
  out.resize(call.prototype ? 4 : 3);
  out[0].kind = out[2].kind = Operand::Kind::kVector;
  for (const auto& each : call.returns) {
    if (!resolve(each, out[0].elements.emplace_back())) return false;
  }
  if (!resolve(call.callee, out[1])) return false;
  if (out[1].kind != Operand::Kind::kFunction && out[1].kind != Operand::Kind::kRegister) {
    return error(call.callee.span, "only a function or a register can be called");
  }
  for (const auto& each : call.arguments) {
    if (!resolve(each, out[2].elements.emplace_back())) return false;
  }
  if (!call.prototype) return true;
  if (!resolve(*call.prototype, out[3])) return false;
  return out[3].kind == Operand::Kind::kPrototype || out[3].kind == Operand::Kind::kTargets ||
         error(call.prototype->span, "expected a call prototype");
}

}  // namespace warpcheck
