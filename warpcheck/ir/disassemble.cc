#include "warpcheck/ir/disassemble.h"

#include <fmt/format.h>

namespace warpcheck {
namespace {

using Kind = Operand::Kind;

std::string constant_text(const Constant& c) {
  switch (c.kind) {
    case Constant::Kind::kF32:
      return fmt::format("0f{:08X}", c.bits & 0xffffffff);
    case Constant::Kind::kF64:
      return fmt::format("0d{:016X}", c.bits);
    default:
      return fmt::format("{}", static_cast<std::int64_t>(c.bits));
  }
}

std::string offset_text(std::int64_t offset) {
  return offset == 0 ? std::string() : fmt::format("+{}", offset);
}

class Printer {
 public:
  Printer(const Module& module, const Function& function) : module_(module), function_(function) {}

  std::string operand(const Operand& op) const {
    std::string out = op.negated ? "!" : "";
    switch (op.kind) {
      case Kind::kRegister:
        out += function_.register_name(op.index);
        break;
      case Kind::kSpecial:
        out += special(op);
        break;
      case Kind::kConstant:
        out += constant_text(op.constant);
        break;
      case Kind::kSymbol:
        out += module_.symbols[op.index].name + offset_text(op.offset);
        break;
      case Kind::kFunction:
        out += module_.functions[op.index].name;
        break;
      case Kind::kLabel:
        out += function_.labels[op.index].name;
        break;
      case Kind::kTargets:
        out += function_.targets[op.index].name;
        break;
      case Kind::kPrototype:
        out += function_.prototypes[op.index].name;
        break;
      case Kind::kVector:
        out += "{" + list(op.elements) + "}";
        break;
      case Kind::kAddress:
        out += address(op);
        break;
      case Kind::kSink:
        out += "_";
        break;
    }
    if (op.pair != Operand::kNoRegister) out += "|" + function_.register_name(op.pair);
    return out;
  }

  std::string list(const std::vector<Operand>& operands) const {
    std::string out;
    for (const Operand& each : operands) out += (out.empty() ? "" : ", ") + operand(each);
    return out;
  }

 private:
  static std::string special(const Operand& op) {
    const auto which = static_cast<Special>(op.index);
    std::string out(to_string(which));
    if (components(which) > 1) out += std::string(".") + "xyz"[op.component];
    return out;
  }

  std::string address(const Operand& op) const {
    std::string out = "[";
    if (op.base == Kind::kRegister)
      out += function_.register_name(op.index);
    else if (op.base == Kind::kSymbol)
      out += module_.symbols[op.index].name;
    else
      out += constant_text(op.constant);
    out += offset_text(op.offset);
    if (op.has_coordinates) out += ", {" + list(op.elements) + "}";
    return out + "]";
  }

  const Module& module_;
  const Function& function_;
};

}  // namespace

std::string opcode_text(const Module& module, const DecodedInst& inst) {
  if (!inst.form) return std::string(module.source->text(inst.span));
  std::string out(inst.form->opcode);
  for (const ModGroup& group : inst.form->groups) {
    if (group.type_slot >= 0) {
      const Type type = group.type_slot == 4
                            ? inst.mods.scale_type
                            : inst.mods.types[static_cast<std::size_t>(group.type_slot)];
      if (type != Type::kNone) out += fmt::format(".{}", to_string(type));
    } else if (!group.shapes.empty()) {
      const MatrixShape& shape = inst.mods.shape;
      out += fmt::format(".m{}n{}", shape.m, shape.n);
      if (shape.k != 0) out += fmt::format("k{}", shape.k);
    } else if (inst.mods.has(group.group)) {
      out += fmt::format(".{}", to_string(inst.mods[group.group]));
    }
  }
  return out;
}

std::string disassemble(const Module& module, const Function& function, const DecodedInst& inst) {
  const Printer printer(module, function);
  if (!inst.form) return opcode_text(module, inst);
  std::string out;
  if (inst.guard != Operand::kNoRegister) {
    out = fmt::format("@{}{} ", inst.guard_negated ? "!" : "", function.register_name(inst.guard));
  }
  out += opcode_text(module, inst);
  if (inst.form->id == FormId::kCall) {
    out += " ";
    if (!inst.operands[0].elements.empty()) {
      out += fmt::format("({}), ", printer.list(inst.operands[0].elements));
    }
    out += printer.operand(inst.operands[1]);
    out += fmt::format(", ({})", printer.list(inst.operands[2].elements));
    if (inst.operands.size() > 3) out += ", " + printer.operand(inst.operands[3]);
  } else if (!inst.operands.empty()) {
    out += " " + printer.list(inst.operands);
  }
  return out + ";";
}

}  // namespace warpcheck
