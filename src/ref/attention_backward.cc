// sparse_attention_backward (contract section 2), from out and lse as they were stored.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "ref/attention_row.h"
#include "ref/numerics.h"
#include "ref/ref.h"
#include "ref/rows.h"

namespace dsattn::ref {
namespace {

// A sink so large that the row's gradients vanish: +inf, or sink * log2(e) overflows fp32.
bool saturates(double sink) {
  return std::isinf(static_cast<float>(sink) * std::numbers::log2e_v<float>) && sink > 0;
}

// What one head of one row needs besides its scores.
struct HeadRow {
  bool live = false;  // false: P = 0, the head takes and gives nothing in this row
  double delta = 0;
  std::vector<double> dout;  // [Dv]
  std::vector<double> dq;    // [D]
};

class Backward {
 public:
  explicit Backward(const SparseAttentionBackwardArgs& args)
      : args_(args),
        width_(args.q.size(2)),
        value_width_(args.out.size(2)),
        selected_(args, args.kv.size(0)),
        row_(args),
        heads_(static_cast<size_t>(args.q.size(1))),
        d_sink_(heads_.size(), 0.0),
        out_(static_cast<size_t>(value_width_)),
        key_(static_cast<size_t>(width_)),
        dkv_(args.kv.size(0), width_) {
    for (HeadRow& head : heads_) {
      head.dout.resize(static_cast<size_t>(value_width_));
      head.dq.resize(static_cast<size_t>(width_));
    }
  }

  void add_row(int64_t t) {
    selected_.get(t, keys_);
    for (HeadRow& head : heads_) std::fill(head.dq.begin(), head.dq.end(), 0.0);
    if (!keys_.empty()) {
      row_.load(t, keys_);
      for (int64_t h = 0; h < head_count(); ++h) prepare_head(t, h);
      for (size_t i = 0; i < keys_.size(); ++i) add_key(static_cast<int64_t>(i), keys_[i].row);
    }
    for (int64_t h = 0; h < head_count(); ++h) {
      write_row(args_.dq, heads_[static_cast<size_t>(h)].dq.data(), width_, t, h);
    }
  }

  void finish() const {
    dkv_.store(args_.dkv);
    if (!args_.d_sink.defined()) return;
    for (size_t h = 0; h < heads_.size(); ++h) write(args_.d_sink, d_sink_[h], h);
  }

 private:
  int64_t head_count() const { return static_cast<int64_t>(heads_.size()); }

  // Delta, d_sink, and the head's scores turned into P.
  void prepare_head(int64_t t, int64_t h) {
    HeadRow& head = heads_[static_cast<size_t>(h)];
    const double lse = read(args_.lse, t, h);
    const double sink = sink_of(args_.sink, h);
    head.live = !std::isinf(lse) && !saturates(sink);
    if (!head.live) return;
    read_row(args_.out, out_.data(), value_width_, t, h);
    read_row(args_.dout, head.dout.data(), value_width_, t, h);
    head.delta = dot(out_.data(), head.dout.data(), value_width_);
    const double norm = log_add_exp(lse, sink);
    if (args_.sink.defined()) {
      d_sink_[static_cast<size_t>(h)] -= std::exp(sink - norm) * head.delta;
    }
    double* s = row_.scores(h);
    for (size_t i = 0; i < keys_.size(); ++i) s[i] = std::exp(s[i] - norm);
  }

  void add_key(int64_t i, int64_t kv_row) {
    read_row(args_.kv, key_.data(), width_, kv_row);
    double* dkv = dkv_.row(kv_row);
    for (int64_t h = 0; h < head_count(); ++h) {
      HeadRow& head = heads_[static_cast<size_t>(h)];
      if (!head.live) continue;
      const double p = row_.scores(h)[i];
      const double dp = dot(head.dout.data(), key_.data(), value_width_);
      const double ds = p * (dp - head.delta) * row_.scale();
      add_scaled(ds, key_.data(), width_, head.dq.data());
      add_scaled(ds, row_.q(h), width_, dkv);
      add_scaled(p, head.dout.data(), value_width_, dkv);
    }
  }

  const SparseAttentionBackwardArgs& args_;
  int64_t width_;
  int64_t value_width_;
  SelectedKeys selected_;
  AttentionRow row_;
  Keys keys_;
  std::vector<HeadRow> heads_;
  std::vector<double> d_sink_;
  std::vector<double> out_;
  std::vector<double> key_;
  RowSums dkv_;
};

}  // namespace

Result<void> run(const SparseAttentionBackwardArgs& args, const ExecContext& ctx) {
  Backward backward(args);
  const Result<void> done =
      for_each_row(args.q.size(0), ctx, [&](int64_t t) { backward.add_row(t); });
  if (done) backward.finish();
  return done;
}

}  // namespace dsattn::ref
