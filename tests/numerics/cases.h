// The one table of numeric cases: every row of the contract's edge table (section 9) and the shapes
// it lists, as generator options. Every backend runs every case; a backend joins by a line in
// backends_under_test().
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "problem/generate.h"

namespace dsattn::testing_table {

struct Case {
  std::string name;  ///< unique; letters, digits and underscores
  GenerateOptions options;

  friend std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.name; }
};

/// Every case, small enough for the float64 reference.
const std::vector<Case>& cases();

/// A column of the test matrix: how to run a case.
struct Column {
  std::string name;
  ExecContext ctx;

  friend std::ostream& operator<<(std::ostream& out, const Column& one) { return out << one.name; }
};

/// The backends that this build and this machine can run: ref in storage precision, and the CPU
/// engine on each instruction set it has.
std::vector<Column> backends_under_test();

/// The problem of a case; aborts the test program if it cannot be made, which is a fault of ours.
Problem problem_of(const GenerateOptions& options);

/// The name of a test parameter made of any text.
std::string identifier(std::string_view text);

}  // namespace dsattn::testing_table
