// The demo's text: repetitions dropped before the split, the bigram model, the windows.
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "demo/random.h"
#include "demo/text.h"

namespace dsattn::demo {
namespace {

std::string paragraph(Random& random, int64_t words) {
  std::string text;
  for (int64_t i = 0; i < words; ++i) {
    for (int64_t c = 0; c < 5; ++c) text += static_cast<char>('a' + random.below(26));
    text += i % 9 == 8 ? '\n' : ' ';
  }
  return text;
}

std::string all_of(const Text& text) {
  std::string all(text.train.begin(), text.train.end());
  return all.append(text.held_out.begin(), text.held_out.end());
}

TEST(DemoText, DropsParagraphsThatRepeatEarlierOnes) {
  Random random(1);
  const std::string first = paragraph(random, 40);
  const std::string second = paragraph(random, 40);
  std::string edited = first;
  edited.replace(30, 5, "OTHER");  // one word of forty
  std::string wrapped = second;
  for (char& c : wrapped) c = c == '\n' ? ' ' : c;  // the same words, other line breaks
  const Text text = split_text(first + "\n\n" + second + "\n\n" + edited + "\n\n" + wrapped);
  const std::string all = all_of(text);
  EXPECT_NE(all.find(first.substr(0, 60)), std::string::npos);
  EXPECT_NE(all.find(second.substr(0, 50)), std::string::npos);
  EXPECT_EQ(all.find("OTHER"), std::string::npos);
  EXPECT_LT(all.size(), first.size() + second.size() + 8);
  EXPECT_GE(text.dropped_bytes, static_cast<int64_t>(edited.size() + wrapped.size()));
}

TEST(DemoText, HoldsOutATenth) {
  Random random(2);
  std::string content;
  for (int i = 0; i < 1000; ++i) content += paragraph(random, 30) + "\n\n";
  const Text text = split_text(content);
  const auto total = static_cast<double>(text.train.size() + text.held_out.size());
  EXPECT_EQ(text.dropped_bytes, 0);
  EXPECT_NEAR(static_cast<double>(text.held_out.size()) / total, 0.1, 0.02);
}

TEST(DemoText, BigramEntropyOfKnownSources) {
  std::vector<uint8_t> alternating;
  std::vector<uint8_t> uniform;
  Random random(3);
  for (int i = 0; i < 40000; ++i) {
    alternating.push_back(i % 2 == 0 ? 'a' : 'b');
    uniform.push_back(static_cast<uint8_t>(random.below(4)));
  }
  EXPECT_NEAR(bigram_entropy(alternating, alternating), 0.0, 1e-3);
  const std::span<const uint8_t> bytes = uniform;
  EXPECT_NEAR(bigram_entropy(bytes.first(20000), bytes.last(20000)), std::log(4.0), 2e-3);
}

TEST(DemoText, TargetsAreTheNextBytes) {
  Text text;
  for (int i = 0; i < 100; ++i) text.held_out.push_back(static_cast<uint8_t>(i));
  text.train = text.held_out;
  const Batch held_out = held_out_batch(text, 1, 8, 3);
  ASSERT_EQ(held_out.tokens.size(), 24u);
  EXPECT_EQ(held_out.tokens[0], 24);
  Random random(4);
  for (const Batch& batch : {held_out, random_batch(text, random, 8, 3)}) {
    ASSERT_EQ(batch.targets.size(), batch.tokens.size());
    for (size_t i = 0; i < batch.tokens.size(); ++i) {
      EXPECT_EQ(batch.targets[i], batch.tokens[i] + 1);
    }
  }
  EXPECT_EQ(held_out_batch(text, 3, 8, 3).tokens.size(), 24u);  // bytes 72 to 96
  EXPECT_TRUE(held_out_batch(text, 4, 8, 3).tokens.empty());
}

TEST(DemoText, RefusesTooLittleText) {
  const Result<Text> text = load_text("/dev/null", 512);
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().code, ErrorCode::kInvalidValue);
  EXPECT_FALSE(load_text("/nonexistent", 512).has_value());
}

}  // namespace
}  // namespace dsattn::demo
