// LaunchPlan: the launch description it turns into, the rules it keeps, the bytes of its arguments.
#include "plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "plan/json.h"
#include "plan/pack.h"
#include "plan/validate.h"

namespace dsattn::plan {
namespace {

// A memset, then a kernel that has every kind of argument.
LaunchPlan sample() {
  LaunchPlan plan;
  plan.arch = "sm_90a";
  const int q = plan.add({"q", ElementType::kBF16, {128, 64}});
  const int dkv = plan.add({"dkv", ElementType::kF32, {32}, BufferInit::kZeros});
  const int clear = plan.add(MemsetNode{{dkv, 16}, 112, 255});
  KernelNode kernel;
  kernel.module = "demo";
  kernel.entry = "k";
  kernel.grid = {4, 2, 1};
  kernel.block = {128, 1, 1};
  kernel.cluster = {2, 1, 1};
  kernel.shared_bytes = 1024;
  kernel.registers = 168;
  kernel.args.push_back({BufferRef{q, 256}});
  kernel.args.push_back({int32_t{-5}});
  kernel.args.push_back({uint32_t{4000000000u}});
  kernel.args.push_back({int64_t{-5000000000}});
  kernel.args.push_back({uint64_t{18000000000000000000u}});
  kernel.args.push_back({0.5f});
  kernel.args.push_back({Bytes{{std::byte{0x00}, std::byte{0xFF}}, 2}});
  kernel.args.push_back({Struct{{{int32_t{3}}, {Struct{{{BufferRef{dkv, 0}}, {1.0f}}}}}}});
  kernel.args.push_back(
      {TensorMap{{q, 0}, ElementType::kBF16, {64, 128}, {128}, {64, 64}, {}, Swizzle::k128B}});
  plan.add(std::move(kernel), {clear});
  return plan;
}

TEST(PlanJson, MatchesTheLaunchDescription) {
  const auto expected = nlohmann::json::parse(R"({
    "arch": "sm_90a",
    "buffers": {"q":   {"dtype": "bf16", "shape": [128, 64], "init": "poison"},
                "dkv": {"dtype": "f32", "shape": [32], "init": "zeros"}},
    "launches": [
      {"memset": {"buffer": "dkv", "offset_bytes": 16, "bytes": 112, "value": 255}, "after": []},
      {"module": "out/demo.sm_90a.ptx", "entry": "k", "grid": [4, 2, 1], "block": [128, 1, 1],
       "cluster": [2, 1, 1], "shared_bytes": 1024, "registers": 168, "programmatic": false,
       "args": [{"buffer": "q", "offset_bytes": 256}, {"i32": -5}, {"u32": 4000000000},
                {"i64": -5000000000}, {"u64": 18000000000000000000}, {"f32": 0.5},
                {"bytes": "00ff", "alignment": 2},
                {"struct": [{"i32": 3},
                            {"struct": [{"buffer": "dkv", "offset_bytes": 0}, {"f32": 1.0}]}]},
                {"tensor_map": {"buffer": "q", "offset_bytes": 0, "dtype": "bf16",
                                "shape": [64, 128], "strides_bytes": [128], "box": [64, 64],
                                "element_strides": [1, 1], "swizzle": "128B",
                                "interleave": "none", "oob": "zero"}}],
       "after": [0]}]})");
  ASSERT_TRUE(validate(sample()));
  EXPECT_EQ(nlohmann::json::parse(to_json(sample(), "out")), expected);
}

TEST(PlanJson, IsReadableTextInTheSpecifiedOrder) {
  LaunchPlan plan;
  plan.arch = "sm_100a";
  const int out = plan.add({"out", ElementType::kF32, {8}});
  KernelNode kernel;
  kernel.module = "fill";
  kernel.entry = "fill";
  kernel.args.push_back({Struct{{{BufferRef{out, 0}}}}});
  plan.add(std::move(kernel));
  EXPECT_EQ(to_json(plan), R"({
  "arch": "sm_100a",
  "buffers": {
    "out": {
      "dtype": "f32",
      "shape": [
        8
      ],
      "init": "poison"
    }
  },
  "launches": [
    {
      "module": "./fill.sm_100a.ptx",
      "entry": "fill",
      "grid": [
        1,
        1,
        1
      ],
      "block": [
        1,
        1,
        1
      ],
      "cluster": [
        1,
        1,
        1
      ],
      "shared_bytes": 0,
      "registers": 0,
      "programmatic": false,
      "args": [
        {
          "struct": [
            {
              "buffer": "out",
              "offset_bytes": 0
            }
          ]
        }
      ],
      "after": []
    }
  ]
}
)");
}

// ------------------------------------------------------------------------------------ validate

KernelNode& kernel_of(LaunchPlan& plan) { return std::get<KernelNode>(plan.nodes[1].work); }

struct BadPlan {
  const char* name;
  void (*spoil)(LaunchPlan&);
  const char* message;  // a part of it
};

class PlanRules : public testing::TestWithParam<BadPlan> {};

TEST_P(PlanRules, BrokenRuleIsNamed) {
  LaunchPlan plan = sample();
  GetParam().spoil(plan);
  const auto result = validate(plan);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidValue);
  EXPECT_NE(result.error().message.find(GetParam().message), std::string::npos)
      << result.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    All, PlanRules,
    testing::Values(
        BadPlan{"SameName", [](LaunchPlan& p) { p.buffers[1].name = "q"; }, "'q' is empty or used"},
        BadPlan{"LaterNode", [](LaunchPlan& p) { p.nodes[0].after = {1}; }, "waits for node 1"},
        BadPlan{"ItselfBefore", [](LaunchPlan& p) { p.nodes[1].after = {1}; }, "waits for node 1"},
        BadPlan{"NoSuchBuffer",
                [](LaunchPlan& p) {
                  kernel_of(p).args[0].value = BufferRef{2, 0};
                },
                "buffer 2 does not exist"},
        BadPlan{"NestedBuffer",
                [](LaunchPlan& p) {
                  kernel_of(p).args[7].value = Struct{{{Struct{{{BufferRef{-1, 0}}}}}}};
                },
                "buffer -1 does not exist"},
        BadPlan{"OffsetBeyond",
                [](LaunchPlan& p) {
                  kernel_of(p).args[0].value = BufferRef{0, 16385};
                },
                "leave buffer 'q' of 16384 bytes"},
        BadPlan{"MemsetBeyond",
                [](LaunchPlan& p) { std::get<MemsetNode>(p.nodes[0].work).bytes = 113; },
                "113 bytes at offset 16 leave buffer 'dkv' of 128"},
        BadPlan{"EmptyGrid", [](LaunchPlan& p) { kernel_of(p).grid[0] = 0; }, "grid (0, 2, 1)"},
        BadPlan{"TallGrid", [](LaunchPlan& p) { kernel_of(p).grid[1] = 65536; }, "grid (4, 65536"},
        BadPlan{"BigBlock",
                [](LaunchPlan& p) {
                  kernel_of(p).block = {32, 33, 1};
                },
                "1024 threads"},
        BadPlan{"OddCluster",
                [](LaunchPlan& p) {
                  kernel_of(p).cluster = {3, 1, 1};
                },
                "dividing the grid"},
        BadPlan{"SharedBytes", [](LaunchPlan& p) { kernel_of(p).shared_bytes = 232449; },
                "232449 bytes of shared memory"},
        BadPlan{"NoEntry", [](LaunchPlan& p) { kernel_of(p).entry.clear(); }, "no entry"},
        BadPlan{
            "MapBeyond",
            [](LaunchPlan& p) { std::get<TensorMap>(kernel_of(p).args[8].value).shape[1] = 129; },
            "leave buffer 'q'"},
        BadPlan{"MapStride",
                [](LaunchPlan& p) {
                  std::get<TensorMap>(kernel_of(p).args[8].value).strides_bytes[0] = 120;
                },
                "a multiple of 16"}),
    [](const auto& test) { return test.param.name; });

TEST(PlanRules, WholeBufferIsAllowed) {
  LaunchPlan plan = sample();
  kernel_of(plan).args[0].value = BufferRef{0, 16384};  // the end: a pointer past the last element
  EXPECT_TRUE(validate(plan));
}

// ---------------------------------------------------------------------------------------- pack

Result<void> no_maps(const TensorMap&, uint64_t, std::byte*) {
  return fail(ErrorCode::kInternal, "no tensor map expected");
}

TEST(PlanPack, StructFollowsTheCompilersLayout) {
  struct Inner {
    uint64_t pointer;
    float scale;
  };
  struct Outer {
    int32_t count;
    Inner inner;
    char tag[3];
    int64_t rows;
    uint32_t last;
  };
  const Arg arg{Struct{{{int32_t{7}},
                        {Struct{{{BufferRef{1, 8}}, {0.25f}}}},
                        {Bytes{{std::byte{'a'}, std::byte{'b'}, std::byte{'c'}}}},
                        {int64_t{-2}},
                        {uint32_t{9}}}}};
  EXPECT_EQ(layout_of(arg).bytes, static_cast<int64_t>(sizeof(Outer)));
  EXPECT_EQ(layout_of(arg).alignment, static_cast<int64_t>(alignof(Outer)));

  const std::array<uint64_t, 2> addresses = {0x1000, 0x2000};
  const auto bytes = pack(arg, addresses, no_maps);
  ASSERT_TRUE(bytes);
  ASSERT_EQ(bytes->size(), sizeof(Outer));
  Outer got{};
  std::memcpy(&got, bytes->data(), sizeof got);
  EXPECT_EQ(got.count, 7);
  EXPECT_EQ(got.inner.pointer, 0x2008u);
  EXPECT_EQ(got.inner.scale, 0.25f);
  EXPECT_EQ(std::string(got.tag, 3), "abc");
  EXPECT_EQ(got.rows, -2);
  EXPECT_EQ(got.last, 9u);
}

TEST(PlanPack, TensorMapGoesThroughTheEncoder) {
  const Arg arg{Struct{{{int32_t{1}}, {TensorMap{{0, 32}, ElementType::kBF16, {64}, {}, {64}}}}}};
  EXPECT_EQ(layout_of(arg).alignment, kTensorMapAlignment);
  EXPECT_EQ(layout_of(arg).bytes, kTensorMapAlignment + kTensorMapBytes);
  uint64_t seen = 0;
  const auto encode = [&](const TensorMap&, uint64_t base, std::byte* encoded) -> Result<void> {
    seen = base;
    std::fill_n(encoded, kTensorMapBytes, std::byte{0xAB});
    return {};
  };
  const std::array<uint64_t, 1> addresses = {0x4000};
  const auto bytes = pack(arg, addresses, encode);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(seen, 0x4020u);
  EXPECT_EQ((*bytes)[127], std::byte{0});
  EXPECT_EQ((*bytes)[128], std::byte{0xAB});
  EXPECT_EQ(bytes->back(), std::byte{0xAB});

  const auto refused = pack(arg, addresses, no_maps);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInternal);
}

}  // namespace
}  // namespace dsattn::plan
