// Whole files: those nvcc made from the .cu files beside them. They load, nothing in them is
// unsupported, and printing and loading them again gives the same instructions.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "sample_files.h"
#include "warpcheck/ir/disassemble.h"
#include "warpcheck/ir/load.h"

namespace warpcheck {
namespace {

class PtxFile : public testing::TestWithParam<const char*> {};

void expect_equal_chains(const Module& a, std::int32_t x, const Module& b, std::int32_t y) {
  // Only the innermost step is printed; outer steps come back as far as a .loc announced them.
  ASSERT_EQ(x < 0, y < 0);
  if (x < 0) return;
  const Location& here = a.locations[static_cast<std::size_t>(x)];
  const Location& there = b.locations[static_cast<std::size_t>(y)];
  EXPECT_EQ(std::tie(here.file, here.line, here.column),
            std::tie(there.file, there.line, there.column));
  EXPECT_EQ(here.inlined_at < 0, there.inlined_at < 0);
}

/// Label and register indices may be renumbered by printing; the printed text may not change.
void expect_equal_modules(const Module& a, const Module& b) {
  ASSERT_EQ(a.functions.size(), b.functions.size());
  for (const Function& function : a.functions) {
    const Function* other = b.find(function.name);
    ASSERT_NE(other, nullptr) << function.name;
    ASSERT_EQ(function.code.size(), other->code.size());
    EXPECT_EQ(function.registers, other->registers);
    for (std::size_t i = 0; i < function.code.size(); ++i) {
      const DecodedInst& x = function.code[i];
      const DecodedInst& y = other->code[i];
      EXPECT_EQ(x.form, y.form);
      EXPECT_EQ(x.mods, y.mods);
      EXPECT_EQ(x.guard, y.guard);
      EXPECT_EQ(x.guard_negated, y.guard_negated);
      EXPECT_EQ(x.operands.size(), y.operands.size());
      EXPECT_EQ(disassemble(a, function, x), disassemble(b, *other, y));
      expect_equal_chains(a, x.location, b, y.location);
    }
    for (std::size_t i = 0; i < function.labels.size(); ++i) {
      const auto same = std::ranges::find(other->labels, function.labels[i].name, &Label::name);
      ASSERT_NE(same, other->labels.end());
      EXPECT_EQ(function.labels[i].target, same->target);
    }
  }
}

TEST_P(PtxFile, RoundTrips) {
  const auto module = load(GetParam(), read_sample(GetParam()));
  ASSERT_TRUE(module) << module.error().to_string();
  for (const auto& each : module->unsupported) {
    ADD_FAILURE() << to_string(*module->source, each.diagnostic);
  }
  const std::string text = disassemble(*module);
  const auto again = load("again.ptx", text);
  ASSERT_TRUE(again) << again.error().to_string();
  expect_equal_modules(*module, *again);
  EXPECT_EQ(disassemble(*again), text);
}

INSTANTIATE_TEST_SUITE_P(All, PtxFile,
                         testing::Values("samples.ptx", "ptx/mbarrier_calibration.ptx",
                                         "ptx/mixed.ptx", "ptx/hopper.ptx", "ptx/blackwell.ptx"));

TEST(Ptx, SourceLinesReachTheArriveOfTheCalibration) {
  const auto module = load("k.ptx", read_sample("ptx/mbarrier_calibration.ptx"));
  ASSERT_TRUE(module) << module.error().to_string();
  int arrives = 0;
  for (const DecodedInst& inst : module->find("lane0_arrives")->code) {
    if (!inst.form || inst.form->id != FormId::kMbarrierArrive) continue;
    ++arrives;
    ASSERT_GE(inst.location, 0);
    const Location& at = module->locations[static_cast<std::size_t>(inst.location)];
    EXPECT_EQ(at.file, 1u);
    EXPECT_EQ(at.line, 23u);  // the asm statement in hand_over
    ASSERT_GE(at.inlined_at, 0);
    EXPECT_EQ(module->locations[static_cast<std::size_t>(at.inlined_at)].line, 35u);
    EXPECT_NE(at.function_name.find("hand_over"), std::string::npos);
  }
  EXPECT_EQ(arrives, 1);
}

TEST(Ptx, LaunchBoundsAndClusterOfHopper) {
  const auto module = load("k.ptx", read_sample("ptx/hopper.ptx"));
  ASSERT_TRUE(module) << module.error().to_string();
  const Function* function = module->find("tma_wgmma");
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(function->bounds.max_threads[0], 256u);
  EXPECT_EQ(function->bounds.required_cluster[0], 2u);
  ASSERT_EQ(function->params.size(), 4u);
  EXPECT_EQ(module->symbols[function->params[0]].bytes, 128u);
  EXPECT_EQ(module->symbols[function->params[0]].align, 64u);
}

}  // namespace
}  // namespace warpcheck
