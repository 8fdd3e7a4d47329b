// Declarations around the instructions: symbols, registers, labels, launch bounds.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "warpcheck/ir/disassemble.h"

namespace warpcheck {
namespace {

std::string init_text(const ast::InitValue& value) {
  if (value.symbol.empty()) {
    if (value.constant.kind == Constant::Kind::kF32)
      return fmt::format("0f{:08X}", value.constant.bits);
    if (value.constant.kind == Constant::Kind::kF64) {
      return fmt::format("0d{:016X}", value.constant.bits);
    }
    return fmt::format("{}", static_cast<std::int64_t>(value.constant.bits));
  }
  std::string out =
      value.generic ? fmt::format("generic({})", value.symbol) : std::string(value.symbol);
  if (value.offset != 0) out += fmt::format("+{}", value.offset);
  if (value.byte_mask != 0xff)
    out = fmt::format("0x{:X}({})", 0xffull << (8 * value.byte_mask), out);
  return out;
}

std::string declaration(const Symbol& symbol) {
  std::string out;
  if (symbol.linkage != Linkage::kInternal) out = fmt::format(".{} ", to_string(symbol.linkage));
  out += fmt::format(".{} .align {} ", to_string(symbol.space), symbol.align);
  if (symbol.is_register_param) out = ".reg ";
  if (symbol.vector > 1) out += fmt::format(".v{} ", symbol.vector);
  out += fmt::format(".{} {}", to_string(symbol.type), symbol.name);
  for (const auto dim : symbol.dims) out += dim ? fmt::format("[{}]", dim) : "[]";
  if (symbol.init.empty()) return out;
  std::string values;
  for (const auto& each : symbol.init) values += (values.empty() ? "" : ", ") + init_text(each);
  return out + (symbol.dims.empty() ? " = " + values : " = {" + values + "}");
}

std::string parameters(const Module& module, const std::vector<std::uint32_t>& list) {
  std::string out;
  for (const auto index : list) {
    out += (out.empty() ? "" : ", ") + declaration(module.symbols[index]);
  }
  return "(" + out + ")";
}

std::string head(const Module& module, const Function& function) {
  std::string out;
  if (function.linkage != Linkage::kInternal) {
    out = fmt::format(".{} ", to_string(function.linkage));
  }
  out += function.is_entry ? ".entry " : ".func ";
  if (!function.returns.empty()) out += parameters(module, function.returns) + " ";
  out += function.name + " " + parameters(module, function.params);
  const LaunchBounds& b = function.bounds;
  const auto triple = [&](std::string_view name, const std::array<std::uint32_t, 3>& v) {
    if (v[0] != 0) out += fmt::format("\n.{} {}, {}, {}", name, v[0], v[1], v[2]);
  };
  triple("maxntid", b.max_threads);
  triple("reqntid", b.required_threads);
  if (b.explicit_cluster) out += "\n.explicitcluster";
  triple("reqnctapercluster", b.required_cluster);
  if (b.min_ctas_per_sm) out += fmt::format("\n.minnctapersm {}", b.min_ctas_per_sm);
  if (b.max_registers) out += fmt::format("\n.maxnreg {}", b.max_registers);
  if (b.max_cluster_rank) out += fmt::format("\n.maxclusterrank {}", b.max_cluster_rank);
  if (b.no_return) out += "\n.noreturn";
  return out;
}

std::string location(const Module& module, std::int32_t index) {
  const Location& at = module.locations[static_cast<std::size_t>(index)];
  std::string out = fmt::format(".loc {} {} {}", at.file, at.line, at.column);
  if (at.inlined_at < 0) return out + "\n";
  const Location& outer = module.locations[static_cast<std::size_t>(at.inlined_at)];
  return out + fmt::format(", inlined_at {} {} {}\n", outer.file, outer.line, outer.column);
}

std::string prototype(const Prototype& node) {
  const auto list = [](const std::vector<Symbol>& symbols) {
    std::string out;
    for (const auto& each : symbols) out += (out.empty() ? "" : ", ") + declaration(each);
    return "(" + out + ")";
  };
  return fmt::format("{}: .callprototype {} _ {};\n", node.name, list(node.returns),
                     list(node.params));
}

std::string declarations(const Module& module, std::size_t index) {
  const Function& function = module.functions[index];
  std::string out;
  for (const RegisterRange& range : function.ranges) {
    bool is_param = false;
    for (const auto* list : {&function.params, &function.returns}) {
      for (const auto each : *list) is_param = is_param || module.symbols[each].name == range.name;
    }
    if (is_param) continue;
    const std::string vector = range.vector > 1 ? fmt::format(".v{} ", range.vector) : "";
    const std::string count = range.indexed ? fmt::format("<{}>", range.count) : "";
    out += fmt::format(".reg {}.{} {}{};\n", vector, to_string(range.type), range.name, count);
  }
  for (std::uint32_t i = 0; i < module.symbols.size(); ++i) {
    const bool local = module.symbols[i].function == static_cast<std::int32_t>(index);
    const auto in = [i](const auto& list) { return std::ranges::find(list, i) != list.end(); };
    if (local && !in(function.params) && !in(function.returns)) {
      out += declaration(module.symbols[i]) + ";\n";
    }
  }
  for (const auto& each : function.prototypes) out += prototype(each);
  return out;
}

std::string body(const Module& module, const Function& function) {
  std::multimap<std::uint32_t, std::string_view> labels;
  for (const auto& each : function.labels) labels.emplace(each.target, each.name);
  std::string out;
  for (const auto& each : function.targets) {
    std::string list;
    for (const auto label : each.labels) {
      list += (list.empty() ? "" : ", ") + function.labels[label].name;
    }
    out += fmt::format("{}: .branchtargets {};\n", each.name, list);
  }
  std::int32_t current = -1;
  for (std::uint32_t i = 0; i <= function.code.size(); ++i) {
    const auto [begin, end] = labels.equal_range(i);
    for (auto it = begin; it != end; ++it) out += fmt::format("{}:\n", it->second);
    if (i == function.code.size()) break;
    const DecodedInst& inst = function.code[i];
    if (inst.location != current && inst.location >= 0) out += location(module, inst.location);
    current = inst.location;
    out += "  " + disassemble(module, function, inst) + "\n";
  }
  return out;
}

}  // namespace

std::string disassemble(const Module& module) {
  std::string out =
      fmt::format(".version {}.{}\n.target {}\n.address_size {}\n", module.version_major,
                  module.version_minor, fmt::join(module.targets, ", "), module.address_size);
  for (const auto& each : module.files)
    out += fmt::format(".file {} \"{}\"\n", each.index, each.path);
  for (const auto& each : module.symbols) {
    if (each.function < 0) out += declaration(each) + ";\n";
  }
  // Heads first: a call may precede its callee's definition.
  for (const auto& each : module.functions) {
    if (!each.is_entry) out += head(module, each) + ";\n";
  }
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    if (!module.functions[i].has_body) continue;
    out += head(module, module.functions[i]) + "\n{\n" + declarations(module, i) +
           body(module, module.functions[i]) + "}\n";
  }
  return out;
}

}  // namespace warpcheck
