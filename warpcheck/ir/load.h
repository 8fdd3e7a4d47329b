// From a syntax tree to a checked module.
#pragma once

#include "warpcheck/ir/module.h"
#include "warpcheck/parse/source.h"

namespace warpcheck {

/// Resolves and checks every name, type and operand. Unknown instructions are not errors: they
/// become entries of Module::unsupported.
ParseResult<Module> bind(const ast::Module& tree, const ParseLimits& limits = {});

/// parse, then bind.
ParseResult<Module> load(std::string name, std::string text, const ParseLimits& limits = {});

}  // namespace warpcheck
