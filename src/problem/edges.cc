#include "problem/edges.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "problem/elements.h"
#include "problem/run.h"

namespace dsattn {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

using Apply = std::function<void(Problem&, Rng&)>;

/// Calls f(query, slot, id&) for every slot.
template <class F>
void each_slot(Problem& problem, F&& f) {
  const TensorView view = problem.view("topk_idxs");
  for (int64_t t = 0; t < view.size(0); ++t) {
    for (int64_t j = 0; j < view.size(1); ++j) f(t, j, view.ptr<int32_t>()[t * view.size(1) + j]);
  }
}

int32_t key_count(const Problem& problem) {
  const char* keys = problem.has("kv") ? "kv" : "index_k";
  return static_cast<int32_t>(problem.view(keys).size(0));
}

void set(Problem& problem, std::string_view name, DType dtype, std::vector<int64_t> shape,
         const std::function<double(int64_t)>& value) {
  auto tensor = OwnedTensor::make(dtype, shape);
  if (!tensor) return;  // as large as its neighbours, which were made
  fill_with(*tensor, value);
  problem.tensors.insert_or_assign(std::string(name), *tensor);
}

Apply first_slots_invalid(int64_t count) {
  return [=](Problem& problem, Rng&) {
    each_slot(problem, [&](int64_t, int64_t j, int32_t& id) { id = j < count ? -1 : id; });
  };
}

Apply sinks(float value) {
  return [=](Problem& problem, Rng&) {
    set(problem, "sink", DType::kF32, {problem.view("q").size(1)}, [=](int64_t) { return value; });
  };
}

void cycle_lengths(Problem& problem, Rng&) {
  const int64_t k = problem.view("topk_idxs").size(1);
  const std::array<int64_t, 6> lengths = {-3, 0, 1, k - 1, k, k + 1};
  set(problem, "topk_length", DType::kI32, {problem.view("topk_idxs").size(0)}, [&](int64_t t) {
    return static_cast<double>(lengths[static_cast<size_t>(t) % lengths.size()]);
  });
}

void garbage_past_length(Problem& problem, Rng& rng) {
  const int64_t k = problem.view("topk_idxs").size(1);
  set(problem, "topk_length", DType::kI32, {problem.view("topk_idxs").size(0)},
      [&](int64_t) { return static_cast<double>(rng.between(0, k)); });
  const auto* lengths = problem.view("topk_length").ptr<const int32_t>();
  each_slot(problem, [&](int64_t t, int64_t j, int32_t& id) {
    if (j >= lengths[t]) id = static_cast<int32_t>(rng.bits());
    if (j > lengths[t] && rng.chance(0.5)) id = 0;  // and some that look valid
  });
}

void out_of_range_ids(Problem& problem, Rng&) {
  const int32_t keys = key_count(problem);
  const std::array<int32_t, 4> bad = {keys, keys + 3, INT32_MAX, INT32_MIN};
  each_slot(problem, [&](int64_t t, int64_t j, int32_t& id) {
    if ((t + j) % 2 == 0) id = bad[static_cast<size_t>(t + j) / 2 % bad.size()];
  });
}

/// No slot selects a row whose number is a multiple of 3; those rows hold NaN and Inf.
void unselected_rows_poisoned(Problem& problem, Rng&) {
  const int32_t keys = key_count(problem);
  each_slot(problem, [&](int64_t, int64_t, int32_t& id) {
    if (id < 0 || id % 3 != 0) return;
    id = id + 1 < keys ? id + 1 : -1;
  });
  for (const char* name : {"kv", "index_k"}) {
    const auto at = problem.tensors.find(name);
    if (at == problem.tensors.end()) continue;
    const int64_t width = at->second.view().size(1);
    const std::vector<double> old = to_doubles(at->second);
    const std::array<float, 3> poison = {kNaN, kInf, -kInf};
    fill_with(at->second, [&](int64_t i) {
      const int64_t row = i / width;
      if (row % 3 != 0) return old[static_cast<size_t>(i)];
      return static_cast<double>(poison[static_cast<size_t>(i + row) % poison.size()]);
    });
  }
}

/// One key row in the middle holds NaN in a value column: whoever selects it shows it.
void selected_nan(Problem& problem, Rng&) {
  const TensorView kv = problem.view("kv");
  if (kv.numel() == 0) return;
  const int64_t at = (kv.size(0) / 2) * kv.size(1);
  const std::vector<double> old = to_doubles(problem.tensors.at("kv"));
  fill_with(problem.tensors.at("kv"), [&](int64_t i) {
    return i == at ? static_cast<double>(kNaN) : old[static_cast<size_t>(i)];
  });
}

void fill(Problem& problem, const char* name, double value) {
  fill_with(problem.tensors.at(name), [=](int64_t) { return value; });
}

/// P = 1 and dP = Delta: dq is what rounding leaves.
void one_key_cancels(Problem& problem, Rng&) {
  fill(problem, "q", 8);
  fill(problem, "kv", -8);
  each_slot(problem, [](int64_t, int64_t j, int32_t& id) { id = j == 0 ? 0 : -1; });
}

/// Scores near -150, where exp() of an unshifted score is 0 in fp32; every second slot is padding.
void low_lse(Problem& problem, Rng& rng) {
  const auto d = static_cast<double>(problem.view("q").size(2));
  fill(problem, "q", 1);
  fill_with(problem.tensors.at("kv"),
            [&](int64_t) { return -150 / std::sqrt(d) + 0.05 * rng.normal(); });
  each_slot(problem, [](int64_t, int64_t j, int32_t& id) { id = j % 2 == 1 ? -1 : id; });
}

/// Raw dot products near 1e5, beyond fp16, that a small scale brings back.
void huge_dot(Problem& problem, Rng&) {
  for (const char* name : {"q", "kv"}) {
    OwnedTensor& tensor = problem.tensors.at(name);
    const std::vector<double> old = to_doubles(tensor);
    fill_with(tensor, [&](int64_t i) { return 100 * old[static_cast<size_t>(i)]; });
  }
  problem.metadata["softmax_scale"] = "1e-5";
}

void same_key_loud_gradient(Problem& problem, Rng&) {
  each_slot(problem, [](int64_t, int64_t, int32_t& id) { id = 0; });
  const std::vector<double> old = to_doubles(problem.tensors.at("dout"));
  fill_with(problem.tensors.at("dout"),
            [&](int64_t i) { return 300 * old[static_cast<size_t>(i)]; });
}

void minus_inf_lse(Problem& problem, Rng&) {
  const TensorView dout = problem.view("dout");
  set(problem, "out", dout.dtype, {dout.size(0), dout.size(1), dout.size(2)},
      [](int64_t) { return 0.25; });
  set(problem, "lse", DType::kF32, {dout.size(0), dout.size(1)}, [](int64_t) { return -kInf; });
  set(problem, "sink", DType::kF32, {dout.size(1)}, [](int64_t) { return 0.5; });
}

/// Every key NaN under an lse that is not: what depends on a score shows it.
void nan_keys(Problem& problem, Rng&) {
  fill(problem, "kv", static_cast<double>(kNaN));
  const TensorView q = problem.view("q");
  set(problem, "lse", DType::kF32, {q.size(0), q.size(1)}, [](int64_t) { return 0.5; });
  if (!problem.has("dout")) return;
  const TensorView dout = problem.view("dout");
  set(problem, "out", dout.dtype, {dout.size(0), dout.size(1), dout.size(2)},
      [](int64_t) { return 0.25; });
}

/// Scores near +500 in even heads and -500 in odd ones, that differ by about 1 from key to key: the
/// first column gives the size, the others the rest.
void loud_scores(Problem& problem, Rng& rng) {
  const int64_t width = problem.view("q").size(2);
  const int64_t heads = problem.view("q").size(1);
  const double size = std::sqrt(500 * std::sqrt(static_cast<double>(width)));
  fill_with(problem.tensors.at("q"), [&](int64_t i) {
    if (i % width != 0) return rng.normal();
    return i / width % heads % 2 == 0 ? size : -size;
  });
  fill_with(problem.tensors.at("kv"),
            [&](int64_t i) { return i % width == 0 ? size : rng.normal(); });
}

Apply predict_zeros(bool clipped) {
  return [=](Problem& problem, Rng&) {
    const std::vector<double> old = to_doubles(problem.tensors.at("predict"));
    fill_with(problem.tensors.at("predict"),
              [&](int64_t i) { return i % 3 == 0 ? 0 : old[static_cast<size_t>(i)]; });
    problem.metadata["clipped"] = clipped ? "true" : "false";
  };
}

/// scores[i] cycles through the values, each `stride` times in a row.
Apply scores_cycle(std::vector<float> values, int64_t stride) {
  return [=](Problem& problem, Rng&) {
    fill_with(problem.tensors.at("scores"), [&](int64_t i) {
      return static_cast<double>(values[static_cast<size_t>(i / stride) % values.size()]);
    });
  };
}

void few_finite(Problem& problem, Rng& rng) {
  fill_with(problem.tensors.at("scores"),
            [&](int64_t i) { return i % 17 == 3 ? rng.normal() : static_cast<double>(-kInf); });
}

void scores_with_nan(Problem& problem, Rng& rng) {
  fill_with(problem.tensors.at("scores"),
            [&](int64_t i) { return i % 3 == 0 ? static_cast<double>(kNaN) : rng.normal(); });
}

/// Many exact ties around the threshold.
void coarse_scores(Problem& problem, Rng& rng) {
  fill_with(problem.tensors.at("scores"),
            [&](int64_t) { return static_cast<double>(rng.between(-2, 2)); });
}

std::vector<Edge> selection_edges() {
  const char* ids = "topk_idxs";
  std::vector<Edge> list;
  list.push_back({"all-invalid", "every id is -1", ids, [](Problem& problem, Rng&) {
                    each_slot(problem, [](int64_t, int64_t, int32_t& id) { id = -1; });
                  }});
  list.push_back({"lengths", "topk_length runs through -3, 0, 1, K-1, K, K+1", ids, cycle_lengths});
  for (int64_t count : {16, 64, 128}) {
    list.push_back({fmt::format("leading-{}-invalid", count),
                    fmt::format("the first {} slots are -1", count), ids,
                    first_slots_invalid(count)});
  }
  list.push_back({"interior-invalid", "holes of -1 inside each row", ids, [](Problem& p, Rng&) {
                    each_slot(p, [](int64_t t, int64_t j, int32_t& id) {
                      if ((t + j) % 5 < 2) id = -1;
                    });
                  }});
  list.push_back({"out-of-range", "ids Skv, Skv+3, 2^31-1 and -2^31", ids, out_of_range_ids});
  list.push_back({"garbage-past-length", "any bits past topk_length", ids, garbage_past_length});
  list.push_back({"same-id", "one key in every slot", ids, [](Problem& problem, Rng&) {
                    const int32_t keys = key_count(problem);
                    each_slot(problem, [&](int64_t t, int64_t, int32_t& id) {
                      id = keys == 0 ? -1 : static_cast<int32_t>(t % keys);
                    });
                  }});
  list.push_back({"unselected-poison", "NaN and Inf in rows that no slot selects, row 0 included",
                  ids, unselected_rows_poisoned});
  return list;
}

std::vector<Edge> attention_edges() {
  std::vector<Edge> list;
  for (float value : {-kInf, kInf, 30.0f, -30.0f, 60.0f, -60.0f, 120.0f, 2e38f, -2e38f, 2.4e38f}) {
    list.push_back(
        {fmt::format("sink={}", value), "this sink in every head", "sink", sinks(value)});
  }
  list.push_back({"sink-nan", "NaN sink in head 0", "sink", [](Problem& problem, Rng& rng) {
                    sinks(0.5f)(problem, rng);
                    problem.view("sink").ptr<float>()[0] = kNaN;
                  }});
  list.push_back(
      {"one-key-cancels", "q = 8, kv = -8, one key: dq vanishes", "dout", one_key_cancels});
  list.push_back({"low-lse", "lse near -150 with padded slots", "dout", low_lse});
  list.push_back({"selected-nan", "NaN in a key row that slots select", "dout", selected_nan});
  list.push_back({"huge-dot", "raw dot products beyond fp16's 65,504", "q", huge_dot});
  list.push_back(
      {"same-key-loud", "one key in every slot, dout x 300", "dout", same_key_loud_gradient});
  list.push_back({"nan-keys", "every key NaN, lse finite", "lse", nan_keys});
  list.push_back({"loud-scores", "scores near +500 and -500", "dout", loud_scores});
  list.push_back({"minus-inf-lse", "lse = -inf with a finite sink: P = 0", "out", minus_inf_lse});
  return list;
}

std::vector<Edge> index_edges() {
  const char* scores = "scores";
  const float denormal = std::numeric_limits<float>::denorm_min();
  return {
      {"predict-zero", "predict = 0 with target > 0", "predict", predict_zeros(false)},
      {"predict-zero-clipped", "the same in the clipped form", "predict", predict_zeros(true)},
      {"all-equal", "every score 1.5", scores, scores_cycle({1.5f}, 1)},
      {"few-finite", "fewer than k finite scores", scores, few_finite},
      {"signed-zeros", "+0 and -0, which are equal", scores, scores_cycle({0.0f, -0.0f}, 3)},
      {"subnormals", "subnormal scores, compared exactly", scores,
       scores_cycle({denormal, -denormal, 2 * denormal, 0.0f, 7 * denormal}, 1)},
      {"infinities", "+inf, -inf and finite", scores, scores_cycle({kInf, 1, -kInf, -2, 3}, 1)},
      {"huge", "magnitudes beyond fp16", scores, scores_cycle({70000, -70000, 3e38f, -3e38f}, 1)},
      {"nan", "NaN is never selected", scores, scores_with_nan},
      {"ties", "five distinct scores", scores, coarse_scores},
  };
}

}  // namespace

const std::vector<Edge>& edges() {
  static const std::vector<Edge> list = [] {
    std::vector<Edge> all = selection_edges();
    for (auto part : {attention_edges(), index_edges()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return list;
}

bool reads_tensor(std::string_view op, std::string_view tensor) {
  auto found = for_op<bool>(op, [&]<class Args>() -> Result<bool> {
    for (const auto& field : Schema<Args>::tensors()) {
      if (field.spec.name == tensor && !field.spec.is_output()) return true;
    }
    return false;
  });
  return found && *found;
}

Result<const Edge*> find_edge(std::string_view name, std::string_view op) {
  std::vector<std::string_view> fitting;
  for (const Edge& edge : edges()) {
    if (!reads_tensor(op, edge.tensor)) continue;
    if (edge.name == name) return &edge;
    fitting.push_back(edge.name);
  }
  return fail(ErrorCode::kInvalidValue, fmt::format("edge case '{}' is not one of {}'s: {}", name,
                                                    op, fmt::join(fitting, ", ")));
}

}  // namespace dsattn
