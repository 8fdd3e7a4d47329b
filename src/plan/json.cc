// The order of keys follows the specification of the launch description, for readers' sake.
#include "plan/json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace dsattn::plan {
namespace {

using Json = nlohmann::ordered_json;

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

std::string_view to_string(BufferInit init) {
  return init == BufferInit::kZeros ? "zeros" : "poison";
}

std::string_view to_string(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::kNone:
      return "none";
    case Swizzle::k32B:
      return "32B";
    case Swizzle::k64B:
      return "64B";
    case Swizzle::k128B:
      return "128B";
  }
  return "unknown";
}

Json reference(const LaunchPlan& plan, const BufferRef& ref) {
  return {{"buffer", plan.buffers[static_cast<size_t>(ref.buffer)].name},
          {"offset_bytes", ref.offset_bytes}};
}

Json tensor_map(const LaunchPlan& plan, const TensorMap& map) {
  Json json = reference(plan, map.base);
  json["dtype"] = plan::to_string(map.type);
  json["shape"] = map.shape;
  json["strides_bytes"] = map.strides_bytes;
  json["box"] = map.box;
  json["element_strides"] =
      map.element_strides.empty() ? std::vector<int64_t>(map.shape.size(), 1) : map.element_strides;
  json["swizzle"] = to_string(map.swizzle);
  json["interleave"] = "none";
  json["oob"] = map.out_of_bounds == OutOfBounds::kNan ? "nan" : "zero";
  return json;
}

std::string hex(const std::vector<std::byte>& bytes) {
  std::string text;
  for (std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

Json argument(const LaunchPlan& plan, const Arg& arg) {
  return std::visit(Overloaded{
                        [&](const BufferRef& ref) { return reference(plan, ref); },
                        [](int32_t value) {
                          return Json{{"i32", value}};
                        },
                        [](uint32_t value) {
                          return Json{{"u32", value}};
                        },
                        [](int64_t value) {
                          return Json{{"i64", value}};
                        },
                        [](uint64_t value) {
                          return Json{{"u64", value}};
                        },
                        [](float value) {
                          return Json{{"f32", value}};
                        },
                        [](const Bytes& bytes) {
                          Json json{{"bytes", hex(bytes.value)}};
                          if (bytes.alignment != 1) json["alignment"] = bytes.alignment;
                          return json;
                        },
                        [&](const Struct& aggregate) {
                          Json members = Json::array();
                          for (const Arg& member : aggregate.members)
                            members.push_back(argument(plan, member));
                          return Json{{"struct", std::move(members)}};
                        },
                        [&](const TensorMap& map) {
                          return Json{{"tensor_map", tensor_map(plan, map)}};
                        },
                    },
                    arg.value);
}

Json launch(const LaunchPlan& plan, const Node& node, std::string_view module_directory) {
  Json json;
  if (const auto* memset = std::get_if<MemsetNode>(&node.work)) {
    Json target = reference(plan, memset->target);
    target["bytes"] = memset->bytes;
    target["value"] = memset->value;
    json["memset"] = std::move(target);
  } else {
    const auto& kernel = std::get<KernelNode>(node.work);
    json["module"] = fmt::format("{}/{}.{}.ptx", module_directory, kernel.module, plan.arch);
    json["entry"] = kernel.entry;
    json["grid"] = kernel.grid;
    json["block"] = kernel.block;
    json["cluster"] = kernel.cluster;
    json["shared_bytes"] = kernel.shared_bytes;
    json["registers"] = kernel.registers;
    json["programmatic"] = kernel.programmatic;
    json["args"] = Json::array();
    for (const Arg& arg : kernel.args) json["args"].push_back(argument(plan, arg));
  }
  json["after"] = node.after;
  return json;
}

}  // namespace

std::string to_json(const LaunchPlan& plan, std::string_view module_directory) {
  Json json{{"arch", plan.arch}, {"buffers", Json::object()}, {"launches", Json::array()}};
  for (const Buffer& buffer : plan.buffers) {
    json["buffers"][buffer.name] = {{"dtype", plan::to_string(buffer.type)},
                                    {"shape", buffer.shape},
                                    {"init", to_string(buffer.init)}};
  }
  for (const Node& node : plan.nodes) {
    json["launches"].push_back(launch(plan, node, module_directory));
  }
  return json.dump(2) + "\n";
}

}  // namespace dsattn::plan
