// The command as a shell sees it: exit statuses, files written whole or not at all, JSON that
// parses, no decoration off a terminal.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "problem/problem.h"

namespace dsattn {
namespace {

struct Outcome {
  int status = -1;
  std::string text;  ///< stdout and stderr
};

class Command : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "dsattn-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Outcome run(const std::string& arguments) const {
    const std::string line =
        "cd " + folder_.string() + " && " DSATTN_COMMAND " " + arguments + " 2>&1";
    Outcome outcome;
    std::FILE* pipe = ::popen(line.c_str(), "r");
    std::array<char, 4096> buffer{};
    while (const size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
      outcome.text.append(buffer.data(), got);
    }
    const int status = ::pclose(pipe);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome;
  }

  void expect(int status, const std::string& arguments, const std::string& text = "") const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.text;
    EXPECT_NE(outcome.text.find(text), std::string::npos) << arguments << "\n" << outcome.text;
    EXPECT_EQ(outcome.text.find('\x1b'), std::string::npos) << "colours off a terminal";
  }

  size_t files() const {
    using It = std::filesystem::directory_iterator;
    return static_cast<size_t>(std::distance(It(folder_), It()));
  }

  std::filesystem::path folder_;
};

constexpr const char* kSmall =
    " --queries 6 --keys 30 --heads 2 --d-qk 24 --d-v 16 --top-k 7 --index-heads 2 ";

TEST_F(Command, HelpIsForNewcomers) {
  for (const char* verb : {"", "gen ", "run ", "verify ", "bench ", "info "}) {
    expect(0, std::string(verb) + "--help", "Usage");
  }
  expect(0, "--help", "Examples:");
}

TEST_F(Command, UsageErrorsAreStatus2) {
  expect(2, "");
  expect(2, "fly");
  expect(2, "run");
  expect(2, "run absent.safetensors -o r.safetensors", "No such file");
  expect(2, "gen nonsense -o p.safetensors", "sparse_attention_forward");
  expect(2, "gen sparse_attention_forward --edge nonsense -o p.safetensors", "all-invalid");
  expect(2, "gen sparse_attention_forward --queries -1 -o p.safetensors", "queries is -1");
  expect(2, "gen sparse_attention_forward", "-o FILE");
  expect(2, "gen sparse_attention_forward --backend gpu -o p.safetensors", "gpu");
  EXPECT_EQ(files(), 0u);
}

TEST_F(Command, GenRunVerifyEveryOperation) {
  for (const char* op :
       {"sparse_attention_forward", "sparse_attention_backward", "sparse_attention",
        "indexer_forward_top_k", "dense_attention_scores", "sparse_indexer_loss"}) {
    expect(0, std::string("gen ") + op + kSmall + "--sink -o p.safetensors");
    expect(0, "run p.safetensors -o r.safetensors --backend ref");
    expect(0, "verify p.safetensors --backend ref", "passed");
    expect(0, "verify p.safetensors --backend ref --result r.safetensors", "passed");
    expect(0, "verify p.safetensors --backend cpu", "passed");
  }
}

TEST_F(Command, AWrongResultIsStatus1) {
  expect(0, std::string("gen sparse_attention_forward") + kSmall + "-o p.safetensors");
  expect(0, "run p.safetensors -o r.safetensors --backend ref");
  auto result = load_problem(folder_ / "r.safetensors");
  ASSERT_TRUE(result) << result.error().message;
  result->tensors.at("lse").elements<float>()[3] += 0.01f;
  ASSERT_TRUE(save_problem(folder_ / "r.safetensors", *result));
  expect(1, "verify p.safetensors --backend ref --result r.safetensors", "lse");
  const Outcome json = run("verify p.safetensors --backend ref --result r.safetensors --json");
  EXPECT_EQ(json.status, 1);
  EXPECT_EQ(nlohmann::json::parse(json.text).at("passed"), false);
}

TEST_F(Command, UnavailableIsStatus3AndWritesNothing) {
  expect(0, std::string("gen sparse_attention_forward") + kSmall + "-o p.safetensors");
  std::ofstream(folder_ / "r.safetensors") << "earlier";
  expect(3, "run p.safetensors -o r.safetensors --backend sim-sm90a", "unavailable");
  std::string kept;
  std::ifstream(folder_ / "r.safetensors") >> kept;
  EXPECT_EQ(kept, "earlier");
  EXPECT_EQ(files(), 2u);
}

TEST_F(Command, ABadProblemLeavesTheEarlierResult) {
  expect(0, std::string("gen sparse_attention_forward") + kSmall + "-o p.safetensors");
  auto problem = load_problem(folder_ / "p.safetensors");
  ASSERT_TRUE(problem);
  problem->metadata["softmax_scale"] = "-1";
  ASSERT_TRUE(save_problem(folder_ / "bad.safetensors", *problem));
  std::ofstream(folder_ / "r.safetensors") << "earlier";
  expect(2, "run bad.safetensors -o r.safetensors --backend ref", "softmax_scale is -1");
  EXPECT_EQ(std::filesystem::file_size(folder_ / "r.safetensors"), 7u);
}

TEST_F(Command, TheSameSeedGivesTheSameFile) {
  const std::string gen = std::string("gen indexer_forward_top_k") + kSmall;
  expect(0, gen + "--seed 5 -o a.safetensors");
  expect(0, gen + "--seed 5 -o b.safetensors");
  expect(0, gen + "--seed 6 -o c.safetensors");
  const auto read = [&](const char* name) {
    std::ifstream file(folder_ / name, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  };
  EXPECT_EQ(read("a.safetensors"), read("b.safetensors"));
  EXPECT_NE(read("a.safetensors"), read("c.safetensors"));
}

TEST_F(Command, JsonParses) {
  const auto parsed = [&](const std::string& arguments) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    return nlohmann::json::parse(outcome.text);
  };
  EXPECT_EQ(parsed("info --json").at("backends").size(), 5u);
  EXPECT_EQ(
      parsed(std::string("gen sparse_attention") + kSmall + "--json -o p.safetensors").at("op"),
      "sparse_attention");
  EXPECT_GT(parsed("run p.safetensors -o r.safetensors --json").at("seconds"), 0.0);
  EXPECT_EQ(parsed("verify p.safetensors --json").at("passed"), true);
  const auto bench = parsed("bench p.safetensors --repeats 3 --json");
  EXPECT_EQ(bench.at("runs"), 3);
  EXPECT_GT(bench.at("gflops"), 0.0);
  EXPECT_GT(bench.at("peak_gflops"), 0.0);
  EXPECT_LE(bench.at("min_s"), bench.at("median_s"));
}

TEST_F(Command, EdgeCasesAreListedAndMade) {
  expect(0, "gen --list-edges", "unselected-poison");
  expect(0, "gen sparse_attention_backward --list-edges", "minus-inf-lse");
  expect(0, std::string("gen sparse_attention_backward --edge same-key-loud") + kSmall +
                "-o p.safetensors");
  expect(0, "verify p.safetensors --backend ref", "passed");
}

}  // namespace
}  // namespace dsattn
