// Judges one result tensor against its float64 reference by the tolerances of contract section 8.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/owned_tensor.h"

namespace dsattn {

/// The bounds a tensor is held to.
struct Tolerance {
  double relative_l2 = 0;  ///< of the tensor; a row may have 4x
  bool exact = false;      ///< integers: no difference at all
};

/// By the output's name and stored type.
Tolerance tolerance_of(std::string_view tensor, DType dtype);

/// What the comparison needs beside the two tensors.
struct CompareContext {
  /// Per element, the size of the terms whose sum the element is (already scaled as the contract
  /// says): a floor under the denominators. Empty: none.
  std::vector<double> term_sizes;
  /// Largest finite magnitude among the operands, at least 1: what an underflow is judged against.
  double operand_size = 1;
};

struct TensorReport {
  std::string name;
  DType dtype = DType::kNone;
  std::vector<int64_t> shape;
  Tolerance tolerance;
  double relative_l2 = 0;
  double worst_row_l2 = 0;     ///< largest relative error of a row (the last dimension)
  int64_t worst_row = -1;      ///< its flat number
  double worst_steps = 0;      ///< largest error in bf16 steps of its row's largest magnitude
  int64_t worst_element = -1;  ///< flat index of that error, or of the first broken pattern
  double got = 0;              ///< the worst element, as computed
  double expected = 0;         ///< and as it should be
  int64_t mismatched = 0;      ///< unequal integers, or NaN and Inf in different places
  bool passed = false;
  std::string failure;  ///< empty if passed: the first rule broken, with both numbers
};

/// `expected` is F64, or I32 for integers. Shapes that differ are a failure, not an error.
TensorReport compare_tensor(std::string_view name, const OwnedTensor& got,
                            const OwnedTensor& expected, const CompareContext& context);

/// "[3, 0, 17]" for a flat index.
std::string index_text(const std::vector<int64_t>& shape, int64_t flat);

}  // namespace dsattn
