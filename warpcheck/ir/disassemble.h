// Canonical PTX from decoded instructions: parsing it again gives an equal module.
#pragma once

#include <string>

#include "warpcheck/ir/module.h"

namespace warpcheck {

/// One instruction, without indentation or line end: "@%p1 ld.global.f32 %f1, [%rd4+8];".
std::string disassemble(const Module& module, const Function& function, const DecodedInst& inst);

/// The opcode with its modifiers in PTX order; the source's own text where unsupported.
std::string opcode_text(const Module& module, const DecodedInst& inst);

/// The whole module. Location chains come back as .loc lines; debug sections do not.
std::string disassemble(const Module& module);

}  // namespace warpcheck
