// Golden cases: one construct each, printed canonically; and the text of errors with their carets.
#include "warpcheck/ir/load.h"

#include <gtest/gtest.h>

#include "warpcheck/ir/disassemble.h"

namespace warpcheck {
namespace {

constexpr std::string_view kHead = ".version 8.0\n.target sm_90a\n.address_size 64\n";
constexpr std::string_view kRegisters =
    ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;\n";

std::string wrap(std::string_view body) {
  return std::string(kHead) + ".entry k(.param .u64 out)\n{\n" + std::string(kRegisters) +
         std::string(body) + "\n}\n";
}

/// The canonical text of the body's instructions, one per line; or the errors.
std::string decode(std::string_view body) {
  const auto module = load("k.ptx", wrap(body));
  if (!module) return module.error().to_string();
  std::string out;
  const Function& function = module->functions.front();
  for (const auto& inst : function.code) out += disassemble(*module, function, inst) + "\n";
  for (const auto& each : module->unsupported) out += each.diagnostic.message + "\n";
  return out;
}

struct Case {
  std::string_view body, expected;
};

TEST(Load, Golden) {
  const Case cases[] = {
      {"@!%p1 add.s32 %r1,%r2,-5;", "@!%p1 add.s32 %r1, %r2, -5;\n"},
      {"shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;",
       "shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;\n"},
      {"setp.lt.and.f32 %p1|%p2, %f1, 0f3F800000, !%p3;",
       "setp.lt.and.f32 %p1|%p2, %f1, 0f3F800000, !%p3;\n"},
      {"mov.f32 %f1, 1.5;", "mov.f32 %f1, 0f3FC00000;\n"},
      {"mov.b32 %r1, (1 << 4) | 3;", "mov.b32 %r1, 19;\n"},
      {"mov.b32 {%rs1, %rs2}, %r1;", "mov.b32 {%rs1, %rs2}, %r1;\n"},
      {"mov.u32 %r1, %tid.x;", "mov.u32 %r1, %tid.x;\n"},
      {"ld.param.u64 %rd1, [out];", "ld.param.u64 %rd1, [out];\n"},
      {"ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1+-16];",
       "ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+-16];\n"},
      {"ld.global.u8 %rs1, [%rd1];", "ld.global.u8 %rs1, [%rd1];\n"},
      {"elect.sync _|%p1, 0xffffffff;", "elect.sync _|%p1, 4294967295;\n"},
      {"cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
       ".multicast::cluster.L2::cache_hint [%r1], [%rd1, {%r2,%r3,%r4}], [%r5], %rs1, %rd2;",
       "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
       ".multicast::cluster.L2::cache_hint [%r1], [%rd1, {%r2, %r3, %r4}], [%r5], %rs1, %rd2;\n"},
      {"atom.add.acq_rel.gpu.global.u32 %r1, [%rd1], 1;",  // ptxas takes this order too
       "atom.acq_rel.gpu.global.add.u32 %r1, [%rd1], 1;\n"},
      {"mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2, 1000;",
       "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2, 1000;\n"},
      {"cvt.rn.bf16x2.f32 %r1, %f1, %f2;", "cvt.rn.bf16x2.f32 %r1, %f1, %f2;\n"},
      {"cvt.u32.u16 %r1, %rs1;", "cvt.u32.u16 %r1, %rs1;\n"},
      {"/* c */ bar.sync 1, 128; // d\r\n", "bar.sync 1, 128;\n"},
      {"L: { L: bra L; } bra L;", "bra L__2;\nbra L;\n"},
      {".reg .b32 a; { .reg .b32 a; add.u32 a, a, 1; } add.u32 a, a, 2;",
       "add.u32 a__2, a__2, 1;\nadd.u32 a, a, 2;\n"},
      {"frobnicate.u32 %r1;", "frobnicate.u32 %r1;\nunsupported instruction 'frobnicate.u32'\n"},
      {"add.weird.s32 %r1, %r2, %r3;",
       "add.weird.s32 %r1, %r2, %r3;\nunsupported modifier '.weird'\n"},
  };
  for (const Case& each : cases) EXPECT_EQ(decode(each.body), each.expected) << each.body;
}

TEST(Load, ErrorsQuoteTheLineWithACaret) {
  const Case cases[] = {
      {"  add.s32 %r1, %r99, %r2;",
       "k.ptx:7:16: error: '%r99' is not declared here\n    add.s32 %r1, %r99, %r2;\n"
       "                 ^~~~\n"},
      {"add.s32 %r1, %f1, %r2;",
       "k.ptx:7:14: error: a .f32 register does not fit .s32 (operand 2 of add.s32)\n"
       "  add.s32 %r1, %f1, %r2;\n               ^~~\n"},
      {"add.s32 %r1, %r2;",
       "k.ptx:7:1: error: an operand is missing (operand 3 of add.s32)\n  add.s32 %r1, %r2;\n"
       "  ^~~~~~~\n"},
      {"ld.global.u32 %r1, %rd1;",
       "k.ptx:7:20: error: expected an address in brackets (operand 2 of ld.global.u32)\n"
       "  ld.global.u32 %r1, %rd1;\n                     ^~~~\n"},
      {"mov.u32 %r1, ;",
       "k.ptx:7:14: error: expected a constant\n  mov.u32 %r1, ;\n"
       "               ^\n"},
  };
  for (const Case& each : cases) EXPECT_EQ(decode(each.body), each.expected);
}

TEST(Load, ReportsSeveralErrorsAndStops) {
  std::string body;
  for (int i = 0; i < 100; ++i) body += "mov.u32 %r1, ;\n";
  const auto module = load("k.ptx", wrap(body));
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().diagnostics.size(), ParseLimits().max_errors);
}

TEST(Load, HostileDepthIsAnError) {
  EXPECT_FALSE(load("k.ptx", wrap(std::string(100000, '{'))));
  EXPECT_FALSE(load("k.ptx", wrap("mov.u32 %r1, " + std::string(100000, '(') + "1;")));
  EXPECT_FALSE(load("k.ptx", wrap("mov.u32 %r1, " + std::string(100000, '-') + "1;")));
}

TEST(Load, DeclarationsCallsAndInitialisers) {
  const auto module = load("k.ptx", std::string(kHead) + R"(
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .align 4 .b8 text[3] = {72, 105, 0};
.global .u64 pointers[2] = {text, generic(text)+4};
.extern .shared .align 1024 .b8 dynamic[];
.visible .entry k(.param .u64 .ptr .global .align 8 p) .reqntid 64, 2, 1 .maxnreg 128
{ .reg .b32 %r<2>; .reg .b64 %rd<2>; .param .b64 a; .param .b64 b; .param .b32 c;
  call.uni (c), vprintf, (a, b);
  ret; }
)");
  ASSERT_TRUE(module) << module.error().to_string();
  const Function* k = module->find("k");
  EXPECT_EQ(k->bounds.required_threads, (std::array<std::uint32_t, 3>{64, 2, 1}));
  EXPECT_EQ(k->bounds.max_registers, 128u);
  EXPECT_EQ(disassemble(*module, *k, k->code[0]), "call.uni (c), vprintf, (a, b);");
  EXPECT_EQ(module->symbols[0].bytes, 3u);
  EXPECT_EQ(module->symbols[1].init[1].offset, 4);
  EXPECT_TRUE(module->symbols[1].init[1].generic);
  EXPECT_EQ(module->symbols[2].bytes, 0u);
}

}  // namespace
}  // namespace warpcheck
