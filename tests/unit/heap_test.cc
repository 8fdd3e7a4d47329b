// The memory promise of the CPU engine: a call needs its inputs, its outputs and the workspace it
// asked for. Every allocation of this program is counted while an operation runs.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>

#include "problem/bind.h"
#include "problem/generate.h"
#include "problem/run.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<std::int64_t> allocated{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  if (counting) allocated += static_cast<std::int64_t>(bytes);
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, 16); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace dsattn {
namespace {

// Descriptions of tensors, error texts and the like; nothing that grows with the problem.
constexpr std::int64_t kSmall = 64 << 10;

GenerateOptions options_of(std::string_view op) {
  GenerateOptions options;
  options.op = op;
  options.queries = 48;
  options.keys = 1500;
  options.heads = 16;
  options.index_heads = 8;
  options.top_k = 128;
  return options;
}

TEST(Heap, OperationsOfTheCpuEngineUseTheirWorkspaceAlone) {
  for_each_op([]<class Args>() {
    SCOPED_TRACE(Schema<Args>::kName);
    ExecContext ctx;
    ctx.backend = Backend::kCpu;
    auto problem = generate(options_of(Schema<Args>::kName), ctx);
    ASSERT_TRUE(problem.has_value()) << problem.error().message;
    auto completed = complete(*problem, ctx);
    ASSERT_TRUE(completed.has_value()) << completed.error().message;
    auto call = bind<Args>(*completed, ctx, OutputTypes::kContract);
    ASSERT_TRUE(call.has_value()) << call.error().message;
    const auto bytes = workspace_bytes(call->args, ctx);
    ASSERT_TRUE(bytes.has_value());
    auto workspace = OwnedTensor::make(DType::kI32, std::array{(*bytes + 3) / 4});
    ctx.workspace = workspace->bytes().data();
    ctx.workspace_bytes = *bytes;
    allocated = 0;
    counting = true;
    const auto done = execute(call->args, ctx);
    counting = false;
    ASSERT_TRUE(done.has_value()) << done.error().message;
    EXPECT_LE(allocated, kSmall);
  });
}

}  // namespace
}  // namespace dsattn
