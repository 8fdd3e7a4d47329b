// The verbs of the `dsattn` command. Each takes its parsed options and returns the exit status of
// contract section 10. Results go to stdout or to files; messages and progress to stderr.
#pragma once

#include <cstdint>
#include <string>

#include "problem/generate.h"

namespace dsattn::cli {

/// The exit statuses, in the contract's words.
enum ExitStatus : int { kPass = 0, kCheckFailed = 1, kUsage = 2, kUnavailableStatus = 3 };

/// Options that the verbs share.
struct Common {
  std::string backend = "auto";
  std::string isa = "auto";
  int threads = 0;
  bool json = false;
};

struct GenOptions {
  Common common;
  GenerateOptions problem;
  std::string kind = "random";
  std::string dtype = "bf16";
  std::string output;
  bool list_edges = false;
};

struct RunOptions {
  Common common;
  std::string problem;
  std::string output;
};

struct VerifyOptions {
  Common common;
  std::string problem;
  std::string result;  ///< an existing result to judge; empty: run the backend
};

struct BenchOptions {
  Common common;
  std::string problem;
  int64_t repeats = 10;
  double seconds = 30;  ///< stop repeating after this long
};

int gen(const GenOptions& options);
int run(const RunOptions& options);
int verify(const VerifyOptions& options);
int bench(const BenchOptions& options);
int info(const Common& options);

/// The context that the common flags describe. Errors: kInvalidValue (an unknown name).
Result<ExecContext> context_of(const Common& options);

/// The name of the backend that computes: what `auto` stands for on tensors in host memory.
std::string backend_name(const Common& options);

/// One line on stderr; the exit status that the error's kind has.
int report(const Error& error);

}  // namespace dsattn::cli
