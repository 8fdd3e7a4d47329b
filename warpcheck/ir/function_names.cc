// FunctionBinder's declarations and name resolution.
#include <fmt/format.h>

#include <charconv>

#include "warpcheck/ir/function_binder.h"

namespace warpcheck {
namespace {

/// "%r12" to "%r" and 12; false without digits, with leading zeros or out of range.
bool split_index(std::string_view name, std::string_view& prefix, std::uint32_t& index) {
  std::size_t at = name.size();
  while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9') --at;
  // A prefix may itself end in a digit, "%r1_" aside: the longest run of digits is the index.
  if (at == name.size() || at == 0 || (name[at] == '0' && at + 1 < name.size())) return false;
  prefix = name.substr(0, at);
  const char* end = name.data() + name.size();
  return std::from_chars(name.data() + at, end, index).ec == std::errc();
}

const std::unordered_map<std::string_view, Special>& specials() {
  static const std::unordered_map<std::string_view, Special> table = {
#define PTX_SPECIAL(id, name, type, components) {name, Special::id},
#include "warpcheck/ir/specials.def"
#undef PTX_SPECIAL
  };
  return table;
}

}  // namespace

bool FunctionBinder::add_name(Names& names, std::string_view name, Entity entity, Span span) {
  if (names.emplace(name, entity).second) return true;
  return error(span, fmt::format("'{}' is declared twice in this scope", name));
}

std::string FunctionBinder::unique(std::string_view name) {
  std::string out(name);
  for (int n = 2; !used_names_.insert(out).second || context_.globals.contains(out); ++n) {
    out = fmt::format("{}__{}", name, n);
  }
  return out;
}

void FunctionBinder::declare_parameters() {
  for (const auto* list : {&tree_.returns, &tree_.params}) {
    auto& out = list == &tree_.params ? function_.params : function_.returns;
    for (const ast::Variable& each : *list) {
      Symbol symbol = make_symbol(each);
      symbol.function = static_cast<std::int32_t>(index_);
      const auto index = static_cast<std::uint32_t>(context_.module.symbols.size());
      out.push_back(index);
      if (each.space == Space::kReg)
        declare_registers(each, false);
      else if (each.name != "_") {
        add_name(scopes_.back().names, each.name, {Entity::Kind::kSymbol, index}, each.span);
        symbol.name = unique(each.name);
      }
      context_.module.symbols.push_back(std::move(symbol));
    }
  }
}

void FunctionBinder::declare(const ast::Variable& variable) {
  if (variable.space == Space::kReg) return declare_registers(variable, variable.range != 0);
  if (variable.range != 0) {
    // .param .b32 p<3>; the elements are p0, p1, p2. Rare enough to be refused.
    error(variable.span, "only registers can be declared as a range");
    return;
  }
  Symbol symbol = make_symbol(variable);
  symbol.function = static_cast<std::int32_t>(index_);
  const auto index = static_cast<std::uint32_t>(context_.module.symbols.size());
  if (!add_name(scopes_.back().names, variable.name, {Entity::Kind::kSymbol, index},
                variable.span)) {
    return;
  }
  symbol.name = unique(variable.name);
  context_.module.symbols.push_back(std::move(symbol));
}

void FunctionBinder::declare_registers(const ast::Variable& variable, bool indexed) {
  const std::uint32_t names = indexed ? variable.range : 1;
  const std::uint64_t count = std::uint64_t{names} * static_cast<std::uint32_t>(variable.vector);
  if (function_.registers.size() + count > context_.limits.max_registers) {
    error(variable.span, "too many registers in this function");
    return;
  }
  const auto index = static_cast<std::uint32_t>(function_.ranges.size());
  Scope& scope = scopes_.back();
  if (!add_name(indexed ? scope.prefixes : scope.names, variable.name,
                {Entity::Kind::kRange, index}, variable.span)) {
    return;
  }
  RegisterRange range;
  range.name = unique(variable.name);
  // "%r__2" would swallow the index in its digits: %r__2<3> names %r__20.
  if (indexed && range.name != variable.name) range.name += "_";
  range.first = static_cast<std::uint32_t>(function_.registers.size());
  range.count = names;
  range.indexed = indexed;
  range.vector = variable.vector;
  range.type = variable.type;
  function_.registers.resize(function_.registers.size() + count, variable.type);
  function_.ranges.push_back(std::move(range));
}

const Entity* FunctionBinder::find(std::string_view name) const {
  for (std::size_t i = scopes_.size(); i-- > 0;) {
    const auto it = scopes_[i].names.find(name);
    if (it != scopes_[i].names.end()) return &it->second;
    const Names& labels = label_scopes_[label_stack_[i]];
    const auto label = labels.find(name);
    if (label != labels.end()) return &label->second;
  }
  const auto it = context_.globals.find(name);
  return it == context_.globals.end() ? nullptr : &it->second;
}

bool FunctionBinder::range_entity(std::string_view name, std::uint32_t& reg,
                                  const RegisterRange*& range) const {
  std::string_view prefix;
  std::uint32_t number = 0;
  const bool has_index = split_index(name, prefix, number);
  for (std::size_t i = scopes_.size(); i-- > 0;) {
    const auto exact = scopes_[i].names.find(name);
    if (exact != scopes_[i].names.end()) {
      if (exact->second.kind != Entity::Kind::kRange) return false;
      range = &function_.ranges[exact->second.index];
      reg = range->first;
      return true;
    }
    // A prefix that ends in digits itself (%r1_ or, legally, %a1<4>): try every split.
    for (std::size_t cut = name.size(); has_index && cut-- > prefix.size();) {
      const auto it = scopes_[i].prefixes.find(name.substr(0, cut));
      if (it == scopes_[i].prefixes.end()) continue;
      std::string_view rest = name.substr(cut);
      if (rest.size() > 1 && rest[0] == '0') continue;
      std::uint32_t at = 0;
      if (std::from_chars(rest.data(), rest.data() + rest.size(), at).ec != std::errc()) continue;
      range = &function_.ranges[it->second.index];
      if (at >= range->count) continue;
      reg = range->first + at * static_cast<std::uint32_t>(range->vector);
      return true;
    }
  }
  return false;
}

bool FunctionBinder::resolve_register(std::string_view name, std::string_view component, Span span,
                                      Operand& out) {
  const RegisterRange* range = nullptr;
  std::uint32_t reg = 0;
  if (!range_entity(name, reg, range)) {
    return error(span, fmt::format("there is no register '{}' here", name));
  }
  out.kind = Operand::Kind::kRegister;
  out.index = reg;
  if (!component.empty()) {
    const auto at = component.size() == 1 ? std::string_view("xyzw").find(component[0])
                                          : std::string_view::npos;
    const auto other = component.size() == 1 ? std::string_view("rgba").find(component[0])
                                             : std::string_view::npos;
    const std::size_t lane = std::min(at, other);
    if (lane >= static_cast<std::size_t>(range->vector)) {
      return error(span, fmt::format("'{}' has no component '.{}'", name, component));
    }
    out.index += static_cast<std::uint32_t>(lane);
  } else if (range->vector > 1) {
    out.kind = Operand::Kind::kVector;
    for (int i = 0; i < range->vector; ++i) {
      Operand& element = out.elements.emplace_back();
      element.kind = Operand::Kind::kRegister;
      element.index = reg + static_cast<std::uint32_t>(i);
    }
  }
  return true;
}

bool FunctionBinder::special(const ast::Operand& node, Operand& out) {
  const auto it = specials().find(node.name);
  if (it == specials().end()) return false;
  out.kind = Operand::Kind::kSpecial;
  out.index = static_cast<std::uint32_t>(it->second);
  if (components(it->second) == 1) return node.component.empty();
  const auto lane = node.component.size() == 1 ? std::string_view("xyz").find(node.component[0])
                                               : std::string_view::npos;
  if (lane == std::string_view::npos) return false;
  out.component = static_cast<std::uint8_t>(lane);
  return true;
}

bool FunctionBinder::resolve_name(const ast::Operand& node, Operand& out) {
  out.negated = node.negated;
  const RegisterRange* range = nullptr;
  std::uint32_t reg = 0;
  if (range_entity(node.name, reg, range)) {
    if (node.offset != 0) return error(node.span, "an offset needs brackets here");
    return resolve_register(node.name, node.component, node.span, out);
  }
  if (special(node, out)) return true;
  const Entity* entity = find(node.name);
  if (!entity) return error(node.span, fmt::format("'{}' is not declared here", node.name));
  constexpr Operand::Kind kKinds[] = {Operand::Kind::kRegister, Operand::Kind::kSymbol,
                                      Operand::Kind::kFunction, Operand::Kind::kLabel,
                                      Operand::Kind::kTargets,  Operand::Kind::kPrototype};
  out.kind = kKinds[static_cast<std::size_t>(entity->kind)];
  out.index = entity->index;
  out.offset = node.offset;
  return true;
}

bool FunctionBinder::resolve_address(const ast::Operand& node, Operand& out) {
  out.kind = Operand::Kind::kAddress;
  out.has_coordinates = node.has_coordinates;
  out.offset = node.offset;
  for (const auto& each : node.elements) {
    if (!resolve(each, out.elements.emplace_back())) return false;
  }
  if (node.name.empty()) {
    out.constant = node.constant;
    return true;
  }
  ast::Operand name;
  name.name = node.name;
  name.span = node.span;
  Operand base;
  if (!resolve_name(name, base)) return false;
  if (base.kind != Operand::Kind::kRegister && base.kind != Operand::Kind::kSymbol) {
    return error(node.span, fmt::format("'{}' is neither a register nor a variable", node.name));
  }
  out.base = base.kind;
  out.index = base.index;
  return true;
}

bool FunctionBinder::resolve(const ast::Operand& node, Operand& out) {
  switch (node.kind) {
    case ast::Operand::Kind::kConstant:
      out.kind = Operand::Kind::kConstant;
      out.constant = node.constant;
      return true;
    case ast::Operand::Kind::kVector:
      out.kind = Operand::Kind::kVector;
      for (const auto& each : node.elements) {
        if (!resolve(each, out.elements.emplace_back())) return false;
      }
      return true;
    case ast::Operand::Kind::kAddress:
      return resolve_address(node, out);
    case ast::Operand::Kind::kSink:
      break;
    case ast::Operand::Kind::kName:
      if (!resolve_name(node, out)) return false;
      break;
  }
  if (node.pair.empty() || node.pair == "_") return true;
  Operand pair;
  if (!resolve_register(node.pair, {}, node.span, pair)) return false;
  if (pair.kind != Operand::Kind::kRegister) return error(node.span, "expected a predicate");
  out.pair = pair.index;
  return true;
}

}  // namespace warpcheck
