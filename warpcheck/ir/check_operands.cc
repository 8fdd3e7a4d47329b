#include "warpcheck/ir/check_operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace warpcheck {
namespace {

using Kind = Operand::Kind;

class Checker {
 public:
  Checker(const Form& form, const Modifiers& mods, const Function& function,
          std::vector<Operand>& operands)
      : form_(form), mods_(mods), function_(function), operands_(operands) {}

  /// Optional positions make this a search, over at most a handful of operands.
  bool match(std::size_t spec_index, std::size_t position) {
    if (spec_index == form_.operands.size()) {
      if (position == operands_.size()) return true;
      return fault(position, "too many operands");
    }
    const OperandSpec& spec = form_.operands[spec_index];
    if (spec.only_with && !mods_.has(*spec.only_with)) return match(spec_index + 1, position);
    if (position < operands_.size()) {
      position_ = position;
      if (fits(spec, operands_[position]) && match(spec_index + 1, position + 1)) {
        assign(spec, operands_[position]);
        return true;
      }
    } else if (!spec.optional) {
      return fault(position, "an operand is missing");
    }
    return spec.optional && match(spec_index + 1, position);
  }

  OperandFault worst;

 private:
  bool fault(std::size_t position, std::string message) {
    if (worst.message.empty() || position > worst.position) worst = {position, std::move(message)};
    return false;
  }
  bool fault(std::string message) { return fault(position_, std::move(message)); }

  bool fits(const OperandSpec& spec, const Operand& op) {
    if (op.pair != Operand::kNoRegister) {
      if (spec.role != Role::kDstPair) return fault("this operand cannot be a pair");
      if (function_.registers[op.pair] != Type::kPred) {
        return fault("the second of a pair must be a predicate");
      }
    }
    if (op.negated && spec.role != Role::kPred) return fault("only a predicate can be negated");
    switch (spec.role) {
      case Role::kDst:
      case Role::kDstPair:
      case Role::kInOut:
      case Role::kSrc:
        return fits_value(spec, op);
      case Role::kImm:
        return op.kind == Kind::kConstant || fault("expected an immediate");
      case Role::kPred:
        if (op.kind == Kind::kConstant) return true;
        return (op.kind == Kind::kRegister && function_.registers[op.index] == Type::kPred) ||
               (op.kind == Kind::kSpecial &&
                type_of(Special{static_cast<std::uint8_t>(op.index)}) == Type::kPred) ||
               fault("expected a predicate");
      case Role::kAddress:
        return fits_address(op, false);
      case Role::kTensorAddress:
        return fits_address(op, true);
      case Role::kLabel:
        return op.kind == Kind::kLabel || op.kind == Kind::kTargets || fault("expected a label");
      case Role::kFunction:
        return true;
    }
    return false;
  }

  bool fits_address(const Operand& op, bool coordinates) {
    if (op.kind != Kind::kAddress) return fault("expected an address in brackets");
    if (op.has_coordinates != coordinates) {
      return fault(coordinates ? "expected [map, {coordinates}]" : "expected a plain address");
    }
    if (op.base != Kind::kRegister) return true;
    const Type type = function_.registers[op.index];
    const bool ok =
        (bit_width(type) == 32 || bit_width(type) == 64) && class_of(type) != TypeClass::kFloat;
    return ok || fault(fmt::format("a .{} register cannot hold an address", to_string(type)));
  }

  bool packs() const {  // mov packs and unpacks: parts of any type that fill the whole
    return std::ranges::none_of(form_.groups,
                                [](const ModGroup& g) { return g.group == Group::kVec; });
  }

  bool fits_value(const OperandSpec& spec, const Operand& op) {
    const Type type = spec.resolve(mods_);
    const bool follows = spec.length == static_cast<int>(Arity::kFollowsVec);
    if (op.kind != Kind::kVector) {
      const int length = follows ? vector_length(mods_) : spec.length;
      if (length > 1) return fault(fmt::format("expected a vector of {}", length));
      if (length < 0 && spec.optional) return fault("expected a vector");
      return fits_scalar(spec, op, type);
    }
    if (follows && packs()) return fits_packed(spec, op, type);
    const int length = follows ? vector_length(mods_) : spec.length;
    const auto size = static_cast<int>(op.elements.size());
    if (length == 0 || (follows && length == 1 && size != 1)) {
      return fault("expected a single operand, not a vector");
    }
    if (length > 0 && size != length) {
      return fault(fmt::format("expected a vector of {}, found {} elements", length, size));
    }
    return std::ranges::all_of(op.elements,
                               [&](const Operand& e) { return fits_scalar(spec, e, type); });
  }

  bool fits_packed(const OperandSpec& spec, const Operand& op, Type type) {
    int bits = 0;
    for (const Operand& element : op.elements) {
      if (!fits_scalar(spec, element, Type::kAny)) return false;
      if (element.kind == Kind::kRegister)
        bits += bit_width(function_.registers[element.index]);
      else
        bits += bit_width(type) / static_cast<int>(op.elements.size());
    }
    return bits == bit_width(type) || fault(fmt::format("the elements have {} bits, .{} has {}",
                                                        bits, to_string(type), bit_width(type)));
  }

  bool fits_scalar(const OperandSpec& spec, const Operand& op, Type type) {
    const bool is_source = spec.role == Role::kSrc;
    switch (op.kind) {
      case Kind::kRegister:
        return fits_register(function_.registers[op.index], type, spec.wider);
      case Kind::kSink:
        return !is_source || fault("'_' cannot be read");
      case Kind::kSpecial:
        if (!is_source) return fault("a special register cannot be written");
        return fits_register(type_of(Special{static_cast<std::uint8_t>(op.index)}), type, true);
      case Kind::kConstant:
        return is_source ? fits_constant(op.constant, type) : fault("a constant cannot be written");
      case Kind::kSymbol:
      case Kind::kFunction:
        if (!is_source) return fault("expected a register");
        return type == Type::kAny || bit_width(type) >= 32 ||
               fault("an address does not fit this type");
      default:
        return fault(is_source ? "expected a register or a constant" : "expected a register");
    }
  }

  bool fits_register(Type have, Type want, bool wider) {
    return register_fits(have, want, wider) ||
           fault(fmt::format("a .{} register does not fit .{}", to_string(have), to_string(want)));
  }

  bool fits_constant(const Constant& constant, Type type) {
    const bool is_int = constant.kind == Constant::Kind::kInt;
    if (class_of(type) == TypeClass::kFloat && is_int) {
      return fault(fmt::format("an integer constant does not fit .{}", to_string(type)));
    }
    if (class_of(type) == TypeClass::kInteger && !is_int) {
      return fault(fmt::format("a floating constant does not fit .{}", to_string(type)));
    }
    return true;
  }

  void assign(const OperandSpec& spec, Operand& op) const {
    if (op.kind == Kind::kAddress) return;
    op.type = spec.resolve(mods_);
    const auto narrow = [&](Operand& each) {
      // 1.0 is a double until its type says otherwise.
      if (op.type != Type::kF32 || each.kind != Kind::kConstant) return;
      if (each.constant.kind != Constant::Kind::kF64) return;
      const auto value = static_cast<float>(std::bit_cast<double>(each.constant.bits));
      each.constant = {Constant::Kind::kF32, std::bit_cast<std::uint32_t>(value)};
    };
    narrow(op);
    for (Operand& each : op.elements) {
      each.type = op.type;
      narrow(each);
    }
  }

  const Form& form_;
  const Modifiers& mods_;
  const Function& function_;
  std::vector<Operand>& operands_;
  std::size_t position_ = 0;
};

}  // namespace

tl::expected<void, OperandFault> check_operands(const Form& form, const Modifiers& mods,
                                                const Function& function,
                                                std::vector<Operand>& operands) {
  Checker checker(form, mods, function, operands);
  if (checker.match(0, 0)) return {};
  return tl::unexpected(std::move(checker.worst));
}

}  // namespace warpcheck
