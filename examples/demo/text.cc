// Reading, dropping repetitions, splitting; the bigram model; windows of the text.
#include "text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string_view>
#include <unordered_set>

namespace dsattn::demo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLicences = "/usr/share/common-licenses";
constexpr int64_t kBlockBytes = 2048;    // the split's unit, rounded up to a paragraph's end
constexpr size_t kHeldOutEvery = 10;     // one block in so many is held out
constexpr size_t kShingleWords = 5;      // words of a run that counts as a repetition
constexpr double kRepeatedShare = 0.25;  // a paragraph with more repeated runs is dropped

std::vector<std::string_view> paragraphs(std::string_view content) {
  std::vector<std::string_view> list;
  size_t start = 0;
  while (start < content.size()) {
    const size_t end = content.find("\n\n", start);
    const size_t stop = end == std::string_view::npos ? content.size() : end;
    if (stop > start) list.push_back(content.substr(start, stop - start));
    start = stop == content.size() ? stop : stop + 2;
  }
  return list;
}

std::vector<uint64_t> word_hashes(std::string_view paragraph) {
  constexpr uint64_t kBasis = 0xCBF29CE484222325u;  // FNV-1a
  std::vector<uint64_t> words;
  uint64_t hash = kBasis;
  bool inside = false;
  for (const char c : paragraph) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      hash = (hash ^ static_cast<uint64_t>(std::tolower(byte))) * 0x100000001B3u;
      inside = true;
    } else if (inside) {
      words.push_back(hash);
      hash = kBasis;
      inside = false;
    }
  }
  if (inside) words.push_back(hash);
  return words;
}

// Hashes of all runs of kShingleWords words (of all words, if there are fewer).
std::vector<uint64_t> shingles(std::string_view paragraph) {
  const std::vector<uint64_t> words = word_hashes(paragraph);
  const size_t length = std::min(kShingleWords, words.size());
  std::vector<uint64_t> list;
  for (size_t i = 0; length > 0 && i + length <= words.size(); ++i) {
    uint64_t hash = length;
    for (size_t j = i; j < i + length; ++j) hash = hash * 0x9E3779B97F4A7C15u + words[j];
    list.push_back(hash);
  }
  return list;
}

std::vector<std::string_view> without_repetitions(std::string_view content) {
  std::unordered_set<uint64_t> seen;
  std::vector<std::string_view> kept;
  for (const std::string_view paragraph : paragraphs(content)) {
    const std::vector<uint64_t> runs = shingles(paragraph);
    const auto repeated =
        std::count_if(runs.begin(), runs.end(), [&](uint64_t run) { return seen.contains(run); });
    seen.insert(runs.begin(), runs.end());
    if (static_cast<double>(repeated) > kRepeatedShare * static_cast<double>(runs.size())) continue;
    kept.push_back(paragraph);
  }
  return kept;
}

Result<std::string> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorCode::kIo, "cannot read " + path.string());
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Links name another file of the folder: they are left out.
Result<std::string> read_licences() {
  std::error_code error;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(kLicences, error)) {
    if (!entry.is_symlink() && entry.is_regular_file()) files.push_back(entry.path());
  }
  if (error || files.empty()) {
    return fail(ErrorCode::kIo, std::string("no texts in ") + kLicences + ": give a text file");
  }
  std::sort(files.begin(), files.end());
  std::string content;
  for (const fs::path& path : files) {
    const Result<std::string> file = read_file(path);
    if (!file) return file;
    content += *file + "\n\n";
  }
  return content;
}

Batch windows(std::span<const uint8_t> text, std::span<const int64_t> starts, int64_t context) {
  Batch batch;
  for (const int64_t start : starts) {
    const auto first = text.begin() + start;
    batch.tokens.insert(batch.tokens.end(), first, first + context);
    batch.targets.insert(batch.targets.end(), first + 1, first + context + 1);
  }
  return batch;
}

}  // namespace

Text split_text(std::string_view content) {
  Text text;
  int64_t kept_bytes = 0;
  size_t block = 0;
  int64_t block_bytes = 0;
  for (const std::string_view paragraph : without_repetitions(content)) {
    auto& part = block % kHeldOutEvery == kHeldOutEvery / 2 ? text.held_out : text.train;
    part.insert(part.end(), paragraph.begin(), paragraph.end());
    part.insert(part.end(), 2, '\n');
    const auto bytes = static_cast<int64_t>(paragraph.size()) + 2;
    kept_bytes += bytes;
    block_bytes += bytes;
    if (block_bytes >= kBlockBytes) {
      ++block;
      block_bytes = 0;
    }
  }
  text.dropped_bytes = std::max<int64_t>(0, static_cast<int64_t>(content.size()) - kept_bytes);
  return text;
}

Result<Text> load_text(const std::string& path, int64_t context) {
  const Result<std::string> content = path.empty() ? read_licences() : read_file(path);
  if (!content) return tl::unexpected(content.error());
  Text text = split_text(*content);
  text.source = path.empty() ? kLicences : path;
  const auto held_out = static_cast<int64_t>(text.held_out.size());
  const auto train = static_cast<int64_t>(text.train.size());
  const int64_t wanted = 8 * context + 1;
  if (held_out < wanted || train < wanted) {
    return fail(ErrorCode::kInvalidValue,
                text.source + " has " + std::to_string(held_out) + " held-out and " +
                    std::to_string(train) +
                    " training bytes without repeated paragraphs, expected " +
                    std::to_string(wanted) + " of each");
  }
  text.bigram_entropy = bigram_entropy(text.train, text.held_out);
  return text;
}

double bigram_entropy(std::span<const uint8_t> train, std::span<const uint8_t> held_out) {
  std::vector<double> pairs(256 * 256, 0.0);
  std::array<double, 256> singles{};
  for (size_t i = 0; i < train.size(); ++i) {
    singles[train[i]] += 1.0;
    if (i > 0) pairs[train[i - 1] * size_t{256} + train[i]] += 1.0;
  }
  double best = std::numeric_limits<double>::infinity();
  for (const double amount : {0.1, 0.3, 1.0, 3.0, 10.0, 30.0}) {
    double nats = 0.0;
    for (size_t i = 1; i < held_out.size(); ++i) {
      const size_t before = held_out[i - 1];
      const double single =
          (singles[held_out[i]] + 1.0) / (static_cast<double>(train.size()) + 256.0);
      nats -= std::log((pairs[before * 256 + held_out[i]] + amount * single) /
                       (singles[before] + amount));
    }
    best = std::min(best, nats / static_cast<double>(held_out.size() - 1));
  }
  return best;
}

Batch random_batch(const Text& text, Random& random, int64_t context, int64_t sequences) {
  std::vector<int64_t> starts;
  for (int64_t b = 0; b < sequences; ++b) {
    starts.push_back(random.below(static_cast<int64_t>(text.train.size()) - context));
  }
  return windows(text.train, starts, context);
}

Batch held_out_batch(const Text& text, int64_t index, int64_t context, int64_t sequences) {
  std::vector<int64_t> starts;
  for (int64_t b = 0; b < sequences; ++b) starts.push_back((index * sequences + b) * context);
  if (starts.back() + context + 1 > static_cast<int64_t>(text.held_out.size())) return {};
  return windows(text.held_out, starts, context);
}

}  // namespace dsattn::demo
