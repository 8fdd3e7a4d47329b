// From a problem to a typed call: inputs by name, parameters from metadata, outputs allocated by
// the contract's rules (section 10) and filled with NaN bytes, so that an element the operation
// forgets to write shows.
#pragma once

#include <cstring>
#include <utility>

#include "ops/execute.h"
#include "problem/problem.h"

namespace dsattn {

/// Element types of the outputs.
enum class OutputTypes : uint8_t {
  kContract,  ///< as section 10 says: bf16 in, bf16 out, and dkv_dtype, d_index_k_dtype
  kF64,       ///< every floating output F64: the reference run (backend ref only)
};

/// A call whose outputs are owned here; its inputs belong to the problem.
template <class Args>
struct BoundCall {
  Args args;
  TensorMap outputs;
};

/// Byte of which outputs are made: a NaN in every floating type, -1 as an integer.
inline constexpr int kPoison = 0xFF;

/// The dimensions that outputs add to those of the inputs: Dv (from out, dout, d_v or the default)
/// and K (top_k).
Result<void> add_output_dims(const Problem& problem, const std::vector<TensorSpec>& outputs,
                             Dims& dims);

/// One poisoned output. Errors: kInvalidValue (a bad dkv_dtype), kInternal (no memory).
Result<OwnedTensor> make_output(const Problem& problem, const TensorSpec& spec, const Dims& dims,
                                OutputTypes types);

/// Whether an optional output is made: max_logits and topk_values always, d_sink beside a sink.
bool wants_output(const Problem& problem, const TensorSpec& spec);

// Each parameter kind from its text.
Result<void> assign(std::string_view name, std::string_view text, float& to);
Result<void> assign(std::string_view name, std::string_view text, std::optional<float>& to);
Result<void> assign(std::string_view name, std::string_view text, int64_t& to);
Result<void> assign(std::string_view name, std::string_view text, bool& to);
Result<void> assign(std::string_view name, std::string_view text, TopKOrder& to);
Result<void> assign(std::string_view name, std::string_view text, IdSpace& to);

template <class Args>
Result<void> bind_parameters(const Problem& problem, Args& args) {
  for (const auto& field : Schema<Args>::params()) {
    const auto text = problem.parameter(field.name);
    if (!text) continue;
    auto assigned = std::visit([&](auto member) { return assign(field.name, *text, args.*member); },
                               field.member);
    if (!assigned) return assigned;
  }
  return {};
}

/// Binds everything. The inputs are validated first, so that a bad one is named before any
/// allocation follows its shape.
template <class Args>
Result<BoundCall<Args>> bind(const Problem& problem, const ExecContext& ctx,
                             OutputTypes types = OutputTypes::kContract) {
  BoundCall<Args> call;
  if (auto bound = bind_parameters(problem, call.args); !bound) {
    return tl::unexpected(bound.error());
  }
  std::vector<BoundTensor> inputs;
  std::vector<TensorSpec> outputs;
  for (const auto& field : Schema<Args>::tensors()) {
    if (field.spec.is_output()) {
      outputs.push_back(field.spec);
      continue;
    }
    call.args.*field.member = problem.view(field.spec.name);
    inputs.push_back({field.spec, call.args.*field.member});
  }
  auto backend = resolve_backend(ctx, inputs);
  if (!backend) return tl::unexpected(backend.error());
  Result<Dims> dims = check_tensors(inputs, *backend, DataCheck::kRequired);
  if (!dims) return tl::unexpected(dims.error());
  if (auto added = add_output_dims(problem, outputs, *dims); !added) {
    return tl::unexpected(added.error());
  }
  for (const auto& field : Schema<Args>::tensors()) {
    if (!field.spec.is_output() || !wants_output(problem, field.spec)) continue;
    auto output = make_output(problem, field.spec, *dims, types);
    if (!output) return tl::unexpected(output.error());
    call.args.*field.member = output->view();
    call.outputs.emplace(field.spec.name, std::move(*output));
  }
  return call;
}

}  // namespace dsattn
