// A LaunchPlan as the launch description (launch.json) that warpcheck reads.
#pragma once

#include <string>
#include <string_view>

#include "plan/plan.h"

namespace dsattn::plan {

/// The launch description of a plan, as indented JSON text. A kernel's module is named
/// `module_directory`/<module>.<arch>.ptx. A memset is a launch entry {"memset": {...}, "after"}.
/// The plan must be valid (validate.h).
std::string to_json(const LaunchPlan& plan, std::string_view module_directory = ".");

}  // namespace dsattn::plan
