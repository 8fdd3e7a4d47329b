// Copies the tensors of one layer into a .safetensors file.
#include "problem_file.h"

#include <cstring>
#include <iterator>

#include "base/safetensors.h"

namespace dsattn::demo {
namespace {

Result<void> add(Safetensors& file, const std::string& name, const TensorView& view) {
  Result<OwnedTensor> tensor =
      OwnedTensor::make(view.dtype, {view.shape.data(), static_cast<size_t>(view.rank)});
  if (!tensor) return tl::unexpected(tensor.error());
  std::memcpy(tensor->bytes().data(), view.data, tensor->bytes().size());
  file.tensors.emplace(name, *tensor);
  return {};
}

}  // namespace

Result<void> save_problem(const std::string& path, Model& model, Params& params, bool sparse) {
  const ModelConfig& c = model.config();
  const int64_t layer = c.layers / 2;
  AttentionState& state = model.state(layer);
  if (!sparse) {
    if (auto done = model.select(params, layer); !done) return done;
  }
  std::vector<float>& sink = params.layers[size_t(layer)].sink.value;
  const AttentionInputs inputs = model.attention().inputs(state);
  const TensorView views[] = {inputs.q, inputs.kv,
                              model.attention().selection(state, true).topk_idxs,
                              TensorView(sink.data(), DType::kF32, {c.heads}),
                              state.dout.view({c.tokens(), c.heads, c.latent})};
  const char* const names[] = {"q", "kv", "topk_idxs", "sink", "dout"};
  Safetensors file;
  for (size_t i = 0; i < std::size(views); ++i) {
    if (auto done = add(file, names[i], views[i]); !done) return done;
  }
  file.metadata = {{"op", "sparse_attention"},
                   {"d_v", std::to_string(c.latent)},
                   {"deterministic", "true"},
                   {"dkv_dtype", "F32"}};
  return write_safetensors(path, file);
}

}  // namespace dsattn::demo
