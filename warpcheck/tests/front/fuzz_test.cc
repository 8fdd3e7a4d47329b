// Deterministic mutations of the samples: cut, flip, repeat, swap. No crash, no hang; what still
// loads can be printed. parse_fuzz.cc is the same property under libFuzzer.
#include <gtest/gtest.h>

#include <random>

#include "sample_files.h"
#include "warpcheck/ir/disassemble.h"
#include "warpcheck/ir/load.h"

namespace warpcheck {
namespace {

constexpr std::uint32_t kSeed = 20261201;

std::string mutate(std::string text, std::mt19937& random) {
  const auto pick = [&](std::size_t size) { return size == 0 ? 0 : random() % size; };
  const int edits = 1 + static_cast<int>(random() % 4);
  for (int i = 0; i < edits && !text.empty(); ++i) {
    const std::size_t at = pick(text.size());
    const std::size_t length = 1 + pick(12);
    switch (random() % 5) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text[at] = static_cast<char>(random());
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        text.erase(at, length);
        break;
      default:
        text.insert(at, text.substr(pick(text.size()), length));
        break;
    }
  }
  return text;
}

TEST(Fuzz, MutatedSamplesNeitherCrashNorHang) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  int loaded = 0;
  int refused = 0;
  for (const char* name : {"ptx/hopper.ptx", "ptx/blackwell.ptx", "samples.ptx"}) {
    const std::string original = read_sample(name);
    for (int i = 0; i < 5000; ++i) {
      const auto module = load("m.ptx", mutate(original, random));
      if (module) {
        ++loaded;
        EXPECT_FALSE(disassemble(*module).empty());
      } else {
        ++refused;
        EXPECT_FALSE(module.error().to_string().empty());
      }
    }
  }
  EXPECT_GT(loaded, 50);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace warpcheck
