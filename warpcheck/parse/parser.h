// PTX text, ISA 7.8 to 9.4, to a syntax tree. Grammar only: names and types are ir/'s.
#pragma once

#include "warpcheck/parse/ast.h"

namespace warpcheck {

/// Parses a module; on failure the first ParseLimits::max_errors errors.
ParseResult<ast::Module> parse(SourcePtr source, const ParseLimits& limits = {});

}  // namespace warpcheck
