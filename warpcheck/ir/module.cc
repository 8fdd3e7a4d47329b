#include "warpcheck/ir/module.h"

#include <algorithm>

namespace warpcheck {
namespace {

struct SpecialRow {
  std::string_view name;
  Type type;
  int components;
};

constexpr SpecialRow kSpecials[] = {
#define PTX_SPECIAL(id, name, type, components) {name, Type::type, components},
#include "warpcheck/ir/specials.def"
#undef PTX_SPECIAL
};

}  // namespace

std::string_view to_string(Special s) { return kSpecials[static_cast<std::size_t>(s)].name; }
Type type_of(Special s) { return kSpecials[static_cast<std::size_t>(s)].type; }
int components(Special s) { return kSpecials[static_cast<std::size_t>(s)].components; }

std::string Function::register_name(std::uint32_t index) const {
  auto it = std::ranges::upper_bound(ranges, index, {}, &RegisterRange::first);
  if (it == ranges.begin()) return "?";
  --it;
  const auto width = static_cast<std::uint32_t>(it->vector);
  std::string out = it->name;
  if (it->indexed) out += std::to_string((index - it->first) / width);
  if (width > 1) out += std::string(".") + "xyzw"[(index - it->first) % width % 4];
  return out;
}

std::uint32_t Module::ptx_line(const DecodedInst& inst) const {
  return source->position(inst.span.offset).line;
}

const Function* Module::find(std::string_view function) const {
  const auto it = std::ranges::find(functions, function, &Function::name);
  return it == functions.end() ? nullptr : &*it;
}

}  // namespace warpcheck
