// Whether resolved operands fit a form's signature.
#pragma once

#include <string>

#include "warpcheck/ir/module.h"

namespace warpcheck {

/// Why the operands do not fit: the position that failed, and why. position == operands.size():
/// one is missing.
struct OperandFault {
  std::size_t position = 0;
  std::string message;
};

/// Fits operands to the form and stores in each the type the form takes it for.
tl::expected<void, OperandFault> check_operands(const Form& form, const Modifiers& mods,
                                                const Function& function,
                                                std::vector<Operand>& operands);

}  // namespace warpcheck
