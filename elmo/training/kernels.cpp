// Training kernels for CPUs: one LSTM layer, the sampled softmax, the character convolution.
//
// Matrix products go to torch (oneDNN) in bfloat16 with float32 accumulation; everything between
// two products is a plain loop that the compiler vectorizes. The outer loop runs over directions
// (or over blocks of work) through at::parallel_for, so each core works on its own direction and
// every product inside is single-threaded: no barrier within a time step.

#include <torch/extension.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace {

using at::Tensor;
using bf16 = uint16_t;  // the raw bits of a bfloat16

inline float widen(bf16 x) {
  uint32_t bits = static_cast<uint32_t>(x) << 16;
  float y;
  std::memcpy(&y, &bits, 4);
  return y;
}

// Round to nearest even. No NaN handling: inputs are clamped before anything can overflow.
inline bf16 narrow(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return static_cast<bf16>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// exp(x) to about 2e-7 relative, as 2^n * 2^r with a polynomial for r in [-1/2, 1/2].
// The clamp keeps the exponent in range: an overflow to infinity would become NaN further on,
// because -ffast-math divides through a reciprocal approximation.
inline float fast_exp(float x) {
  x = x < -80.f ? -80.f : (x > 30.f ? 30.f : x);
  const float y = x * 1.44269504f;
  const float n = std::nearbyint(y);
  const float r = (y - n) * 0.69314718f;
  float p = 1.f / 720.f;
  p = p * r + 1.f / 120.f;
  p = p * r + 1.f / 24.f;
  p = p * r + 1.f / 6.f;
  p = p * r + 0.5f;
  p = p * r + 1.f;
  p = p * r + 1.f;
  const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
  float scale;
  std::memcpy(&scale, &bits, 4);
  return p * scale;
}

inline float sigmoid(float x) { return 1.f / (1.f + fast_exp(x < -30.f ? 30.f : -x)); }
inline float tanh_(float x) { return 2.f / (1.f + fast_exp(-2.f * (x < -15.f ? -15.f : x))) - 1.f; }
inline float clamp(float x, float c) { return x < -c ? -c : (x > c ? c : x); }

bf16* bits(const Tensor& t) { return reinterpret_cast<bf16*>(t.data_ptr<at::BFloat16>()); }

void check(const Tensor& t, at::ScalarType type, int64_t dims, const char* name) {
  TORCH_CHECK(t.scalar_type() == type && t.dim() == dims && t.is_contiguous(),
              name, " must be a contiguous ", type, " tensor of ", dims, " dimensions");
}

// ---------------------------------------------------------------- one LSTM layer

// z (B, 4C) holds [x; h] W on entry and the activated gates i, j, f, o on exit.
void lstm_point_forward(int64_t rows, int64_t C, bf16* z, const float* bias, const float* c_prev,
                        float* c_out, bf16* m, float cell_clip) {
  for (int64_t b = 0; b < rows; ++b) {
    bf16* __restrict__ zi = z + b * 4 * C;
    bf16* __restrict__ zj = zi + C;
    bf16* __restrict__ zf = zj + C;
    bf16* __restrict__ zo = zf + C;
    const float* __restrict__ cp = c_prev ? c_prev + b * C : nullptr;
    float* __restrict__ cn = c_out + b * C;
    bf16* __restrict__ mn = m + b * C;
#pragma GCC ivdep
    for (int64_t k = 0; k < C; ++k) {
      const float i = sigmoid(widen(zi[k]) + bias[k]);
      const float j = tanh_(widen(zj[k]) + bias[C + k]);
      const float f = sigmoid(widen(zf[k]) + bias[2 * C + k] + 1.f);
      const float o = sigmoid(widen(zo[k]) + bias[3 * C + k]);
      const float c = clamp((cp ? f * cp[k] : 0.f) + i * j, cell_clip);
      cn[k] = c;
      mn[k] = narrow(o * tanh_(c));
      zi[k] = narrow(i);
      zj[k] = narrow(j);
      zf[k] = narrow(f);
      zo[k] = narrow(o);
    }
  }
}

// gates (B, 4C) hold i, j, f, o on entry and dz on exit; dc (B, C) is carried from t + 1 to t.
void lstm_point_backward(int64_t rows, int64_t C, bf16* gates, const float* c_now,
                         const float* c_prev, const bf16* dm, float* dc_carry, float* dbias,
                         float cell_clip) {
  for (int64_t b = 0; b < rows; ++b) {
    bf16* __restrict__ gi = gates + b * 4 * C;
    bf16* __restrict__ gj = gi + C;
    bf16* __restrict__ gf = gj + C;
    bf16* __restrict__ go = gf + C;
    const float* __restrict__ cn = c_now + b * C;
    const float* __restrict__ cp = c_prev ? c_prev + b * C : nullptr;
    const bf16* __restrict__ dmb = dm + b * C;
    float* __restrict__ dcc = dc_carry + b * C;
    float* __restrict__ db = dbias;
#pragma GCC ivdep
    for (int64_t k = 0; k < C; ++k) {
      const float i = widen(gi[k]), j = widen(gj[k]), f = widen(gf[k]), o = widen(go[k]);
      const float d = widen(dmb[k]);
      const float tc = tanh_(cn[k]);
      float dc = d * o * (1.f - tc * tc) + dcc[k];
      dc = std::fabs(cn[k]) < cell_clip ? dc : 0.f;
      const float dzi = dc * j * i * (1.f - i);
      const float dzj = dc * i * (1.f - j * j);
      const float dzf = (cp ? dc * cp[k] : 0.f) * f * (1.f - f);
      const float dzo = d * tc * o * (1.f - o);
      dcc[k] = dc * f;
      gi[k] = narrow(dzi);
      gj[k] = narrow(dzj);
      gf[k] = narrow(dzf);
      go[k] = narrow(dzo);
      db[k] += dzi;
      db[C + k] += dzj;
      db[2 * C + k] += dzf;
      db[3 * C + k] += dzo;
    }
  }
}

// x (D, T, B, P) in the order in which each direction reads it. Returns
// out (D, T, B, P), xh (D, T + 1, B, 2P), gates (D, T, B, 4C), cell (D, T, B, C), m (D, T, B, C).
std::vector<Tensor> lstm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                 const Tensor& projection, double cell_clip, double proj_clip,
                                 bool skip) {
  check(x, at::kBFloat16, 4, "x");
  check(weight, at::kBFloat16, 3, "weight");
  check(bias, at::kFloat, 2, "bias");
  check(projection, at::kBFloat16, 3, "projection");
  const int64_t D = x.size(0), T = x.size(1), B = x.size(2), P = x.size(3);
  const int64_t C = projection.size(2);
  TORCH_CHECK(weight.size(1) == 4 * C && weight.size(2) == 2 * P && projection.size(1) == P,
              "weight must be (D, 4C, 2P) and projection (D, P, C)");
  const auto half = x.options();
  Tensor out = at::empty({D, T, B, P}, half);
  Tensor xh = at::empty({D, T + 1, B, 2 * P}, half);
  Tensor gates = at::empty({D, T, B, 4 * C}, half);
  Tensor cell = at::empty({D, T, B, C}, half.dtype(at::kFloat));
  Tensor m = at::empty({D, T, B, C}, half);
  const float pc = static_cast<float>(proj_clip);

  at::parallel_for(0, D, 1, [&](int64_t begin, int64_t end) {
    at::AutoDispatchBelowAutograd guard;
    for (int64_t d = begin; d < end; ++d) {
      const Tensor w = weight[d].t(), wp = projection[d].t();
      const Tensor xh_d = xh[d], gates_d = gates[d], m_d = m[d];
      Tensor p = at::empty({B, P}, half);
      for (int64_t t = 0; t <= T; ++t) {  // lay the inputs beside the room for h
        bf16* to = bits(xh_d) + t * B * 2 * P;
        const bf16* from = bits(x) + (d * T + t) * B * P;
        for (int64_t b = 0; b < B; ++b) {
          if (t < T) std::memcpy(to + b * 2 * P, from + b * P, 2 * P);
          if (t == 0) std::memset(to + b * 2 * P + P, 0, 2 * P);
        }
      }
      for (int64_t t = 0; t < T; ++t) {
        Tensor z = gates_d[t], m_t = m_d[t];
        at::mm_out(z, xh_d[t], w);
        float* c = cell.data_ptr<float>() + (d * T + t) * B * C;
        lstm_point_forward(B, C, bits(z), bias.data_ptr<float>() + d * 4 * C,
                           t ? c - B * C : nullptr, c, bits(m_t), static_cast<float>(cell_clip));
        at::mm_out(p, m_t, wp);
        const bf16* pb = bits(p);
        const bf16* xt = bits(x) + (d * T + t) * B * P;
        bf16* hn = bits(xh_d) + (t + 1) * B * 2 * P + P;
        bf16* ot = bits(out) + (d * T + t) * B * P;
        for (int64_t b = 0; b < B; ++b)
#pragma GCC ivdep
          for (int64_t k = 0; k < P; ++k) {
            const float h = clamp(widen(pb[b * P + k]), pc);
            hn[b * 2 * P + k] = narrow(h);
            ot[b * P + k] = narrow(skip ? h + widen(xt[b * P + k]) : h);
          }
      }
    }
  });
  return {out, xh, gates, cell, m};
}

// dout (D, T, B, P). gates are overwritten (they become dz). Returns dx (D, T, B, P),
// dweight (D, 4C, 2P), dbias (D, 4C), dprojection (D, P, C), the last three in float32.
std::vector<Tensor> lstm_backward(const Tensor& dout, const Tensor& xh, Tensor gates,
                                  const Tensor& cell, const Tensor& m, const Tensor& weight,
                                  const Tensor& projection, double cell_clip, double proj_clip,
                                  bool skip) {
  check(dout, at::kBFloat16, 4, "dout");
  const int64_t D = dout.size(0), T = dout.size(1), B = dout.size(2), P = dout.size(3);
  const int64_t C = projection.size(2);
  const auto half = dout.options();
  const auto full = half.dtype(at::kFloat);
  Tensor dx = at::empty({D, T, B, P}, half);
  Tensor dweight = at::empty({D, 4 * C, 2 * P}, full);
  Tensor dbias = at::zeros({D, 4 * C}, full);
  Tensor dprojection = at::empty({D, P, C}, full);
  const float pc = static_cast<float>(proj_clip);

  at::parallel_for(0, D, 1, [&](int64_t begin, int64_t end) {
    at::AutoDispatchBelowAutograd guard;
    for (int64_t d = begin; d < end; ++d) {
      const Tensor w = weight[d], wp = projection[d];
      Tensor dp = at::empty({T, B, P}, half), dm = at::empty({B, C}, half);
      Tensor dxh = at::zeros({B, 2 * P}, half), dc = at::zeros({B, C}, full);
      const Tensor gates_d = gates[d];
      for (int64_t t = T - 1; t >= 0; --t) {
        const bf16* h = bits(xh) + ((d * (T + 1) + t + 1) * B) * 2 * P + P;
        const bf16* dy = bits(dout) + (d * T + t) * B * P;
        const bf16* back = bits(dxh) + P;  // gradient of h_t through step t + 1
        bf16* dpt = bits(dp) + t * B * P;
        for (int64_t b = 0; b < B; ++b)
#pragma GCC ivdep
          for (int64_t k = 0; k < P; ++k) {
            const float g = widen(dy[b * P + k]) + widen(back[b * 2 * P + k]);
            dpt[b * P + k] = std::fabs(widen(h[b * 2 * P + k])) < pc ? narrow(g) : 0;
          }
        at::mm_out(dm, dp[t], wp);
        Tensor dz = gates_d[t];
        const float* c = cell.data_ptr<float>() + (d * T + t) * B * C;
        lstm_point_backward(B, C, bits(dz), c, t ? c - B * C : nullptr, bits(dm),
                            dc.data_ptr<float>(), dbias.data_ptr<float>() + d * 4 * C,
                            static_cast<float>(cell_clip));
        at::mm_out(dxh, dz, w);
        const bf16* dxt = bits(dxh);
        bf16* to = bits(dx) + (d * T + t) * B * P;
        for (int64_t b = 0; b < B; ++b)
#pragma GCC ivdep
          for (int64_t k = 0; k < P; ++k)
            to[b * P + k] = skip ? narrow(widen(dxt[b * 2 * P + k]) + widen(dy[b * P + k]))
                                 : dxt[b * 2 * P + k];
      }
      const Tensor dz = gates_d.view({T * B, 4 * C});
      dweight[d].copy_(at::mm(dz.t(), xh[d].slice(0, 0, T).view({T * B, 2 * P})));
      dprojection[d].copy_(at::mm(dp.view({T * B, P}).t(), m[d].view({T * B, C})));
    }
  });
  return {dx, dweight, dbias, dprojection};
}

// ---------------------------------------------------------------- sampled softmax

// hidden (D, N, P); wt (U, P), bt (U): rows and corrected biases of the batch's distinct targets;
// target (D, N): index of each row's target in them; hit (U): the target's place among the
// candidates or -1; wc (K, P), bc (K): candidates. Loss is summed over rows; gradients are
// those of scale * loss. Returns loss (D), dhidden (D, N, P), dwt, dbt, dwc, dbc.
std::vector<Tensor> sampled_softmax(const Tensor& hidden, const Tensor& target, const Tensor& wt,
                                    const Tensor& bt, const Tensor& hit, const Tensor& wc,
                                    const Tensor& bc, double scale, int64_t block) {
  check(hidden, at::kBFloat16, 3, "hidden");
  check(target, at::kLong, 2, "target");
  check(wt, at::kBFloat16, 2, "wt");
  check(wc, at::kBFloat16, 2, "wc");
  check(bt, at::kFloat, 1, "bt");
  check(bc, at::kFloat, 1, "bc");
  check(hit, at::kLong, 1, "hit");
  const int64_t D = hidden.size(0), N = hidden.size(1), P = hidden.size(2);
  const int64_t K = wc.size(0), U = wt.size(0);
  const auto full = bt.options();
  Tensor loss = at::zeros({D}, full.dtype(at::kDouble));
  Tensor dhidden = at::empty_like(hidden);
  Tensor dwt = at::zeros({D, U, P}, full), dbt = at::zeros({D, U}, full);
  Tensor dwc = at::zeros({D, K, P}, full), dbc = at::zeros({D, K}, full);
  const float s = static_cast<float>(scale);

  at::parallel_for(0, D, 1, [&](int64_t begin, int64_t end) {
    at::AutoDispatchBelowAutograd guard;
    std::vector<float> v(K), row_gt(block);
    for (int64_t d = begin; d < end; ++d) {
      const Tensor h_d = hidden[d], dh_d = dhidden[d], wct = wc.t();
      Tensor logits = at::empty({block, K}, hidden.options());
      Tensor dw = at::empty({K, P}, hidden.options());
      float* dwc_d = dwc.data_ptr<float>() + d * K * P;
      float* dbc_d = dbc.data_ptr<float>() + d * K;
      float* dwt_d = dwt.data_ptr<float>() + d * U * P;
      float* dbt_d = dbt.data_ptr<float>() + d * U;
      const float* bias = bc.data_ptr<float>();
      for (int64_t r0 = 0; r0 < N; r0 += block) {
        const int64_t rows = std::min(block, N - r0);
        const Tensor h = h_d.slice(0, r0, r0 + rows);
        Tensor g = logits.slice(0, 0, rows), dh = dh_d.slice(0, r0, r0 + rows);
        at::mm_out(g, h, wct);
        for (int64_t r = 0; r < rows; ++r) {
          bf16* __restrict__ l = bits(g) + r * K;
          const bf16* __restrict__ hr = bits(h) + r * P;
          const int64_t u = target.data_ptr<int64_t>()[d * N + r0 + r];
          const int64_t taken = hit.data_ptr<int64_t>()[u];
          const bf16* __restrict__ w = bits(wt) + u * P;
          float truth = 0.f;
          for (int64_t k = 0; k < P; ++k) truth += widen(hr[k]) * widen(w[k]);
          truth += bt.data_ptr<float>()[u];
          float* __restrict__ vk = v.data();
          if (taken >= 0) l[taken] = narrow(-1e30f);  // never its own negative
          float top = truth;
          for (int64_t k = 0; k < K; ++k) {
            vk[k] = widen(l[k]) + bias[k];
            top = vk[k] > top ? vk[k] : top;
          }
          float sum = 0.f;
          for (int64_t k = 0; k < K; ++k) {
            vk[k] = fast_exp(vk[k] - top);
            sum += vk[k];
          }
          const float e = fast_exp(truth - top);
          const float to_gradient = s / (sum + e);
#pragma GCC ivdep
          for (int64_t k = 0; k < K; ++k) {
            const float gk = vk[k] * to_gradient;
            dbc_d[k] += gk;
            l[k] = narrow(gk);
          }
          loss.data_ptr<double>()[d] += std::log(sum + e) - (truth - top);
          const float gt = e * to_gradient - s;
          row_gt[r] = gt;
          dbt_d[u] += gt;
          float* __restrict__ dwu = dwt_d + u * P;
          for (int64_t k = 0; k < P; ++k) dwu[k] += gt * widen(hr[k]);
        }
        at::mm_out(dh, g, wc);
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t u = target.data_ptr<int64_t>()[d * N + r0 + r];
          const bf16* __restrict__ w = bits(wt) + u * P;
          bf16* __restrict__ to = bits(dh) + r * P;
          for (int64_t k = 0; k < P; ++k) to[k] = narrow(widen(to[k]) + row_gt[r] * widen(w[k]));
        }
        at::mm_out(dw, g.t(), h);
        const bf16* __restrict__ dwb = bits(dw);
        for (int64_t k = 0; k < K * P; ++k) dwc_d[k] += widen(dwb[k]);
      }
    }
  });
  return {loss, dhidden, dwt.sum(0), dbt.sum(0), dwc.sum(0), dbc.sum(0)};
}

// ---------------------------------------------------------------- character convolution

// A convolution over embedded characters is linear in the embedding, so the share of character c
// at offset k of a window is one row of a table: table (A, S) has, for every filter in turn and
// every offset in it, `count` columns. ids (N, W); used (N): positions before the word's padding.
// Windows that lie in padding are all alike, so the first of them stands for the rest.
// Returns the maximum over windows (N, F), without bias, and its window (N, F).
std::vector<Tensor> char_forward(const Tensor& table, const Tensor& ids, const Tensor& used,
                                 const std::vector<int64_t>& widths,
                                 const std::vector<int64_t>& counts) {
  check(table, at::kFloat, 2, "table");
  check(ids, at::kShort, 2, "ids");
  check(used, at::kLong, 1, "used");
  const int64_t N = ids.size(0), W = ids.size(1), S = table.size(1);
  int64_t F = 0, widest = 0;
  for (int64_t c : counts) F += c, widest = std::max(widest, c);
  Tensor out = at::empty({N, F}, table.options());
  Tensor where = at::empty({N, F}, ids.options());
  at::parallel_for(0, N, 64, [&](int64_t begin, int64_t end) {
    std::vector<float> sum(widest);
    std::vector<int32_t> at(widest);
    for (int64_t n = begin; n < end; ++n) {
      const int16_t* c = ids.data_ptr<int16_t>() + n * W;
      float* best = out.data_ptr<float>() + n * F;
      int16_t* arg = where.data_ptr<int16_t>() + n * F;
      int64_t column = 0;
      for (size_t i = 0; i < widths.size(); ++i) {
        const int64_t w = widths[i], count = counts[i];
        const int64_t last = std::min(W - w, used.data_ptr<int64_t>()[n]);
        float* __restrict__ acc = sum.data();
        int32_t* __restrict__ a = at.data();
        float* __restrict__ b = best;
        for (int64_t f = 0; f < count; ++f) b[f] = -std::numeric_limits<float>::max(), a[f] = 0;
        for (int64_t p = 0; p <= last; ++p) {
          const float* __restrict__ row = table.data_ptr<float>() + c[p] * S + column;
          for (int64_t f = 0; f < count; ++f) acc[f] = row[f];
          for (int64_t k = 1; k < w; ++k) {
            const float* __restrict__ next =
                table.data_ptr<float>() + c[p + k] * S + column + k * count;
            for (int64_t f = 0; f < count; ++f) acc[f] += next[f];
          }
          const int32_t position = static_cast<int32_t>(p);
          for (int64_t f = 0; f < count; ++f) {
            const bool more = acc[f] > b[f];
            b[f] = more ? acc[f] : b[f];
            a[f] = more ? position : a[f];
          }
        }
        for (int64_t f = 0; f < count; ++f) arg[f] = static_cast<int16_t>(a[f]);
        best += count, arg += count, column += w * count;
      }
    }
  });
  return {out, where};
}

// Each filter's columns belong to one thread, so no two write the same place and the order of
// the additions never changes.
Tensor char_backward(const Tensor& dout, const Tensor& ids, const Tensor& where, int64_t n_chars,
                     const std::vector<int64_t>& widths, const std::vector<int64_t>& counts) {
  check(dout, at::kFloat, 2, "dout");
  const int64_t N = ids.size(0), W = ids.size(1), F = dout.size(1);
  std::vector<int64_t> width_of, column_of, stride_of;
  int64_t S = 0;
  for (size_t i = 0; i < widths.size(); ++i) {
    for (int64_t f = 0; f < counts[i]; ++f)
      width_of.push_back(widths[i]), column_of.push_back(S + f), stride_of.push_back(counts[i]);
    S += widths[i] * counts[i];
  }
  Tensor dtable = at::zeros({n_chars, S}, dout.options());
  at::parallel_for(0, F, 16, [&](int64_t begin, int64_t end) {
    float* d = dtable.data_ptr<float>();
    for (int64_t n = 0; n < N; ++n) {
      const int16_t* c = ids.data_ptr<int16_t>() + n * W;
      const int16_t* arg = where.data_ptr<int16_t>() + n * F;
      const float* g = dout.data_ptr<float>() + n * F;
      for (int64_t f = begin; f < end; ++f) {
        if (g[f] == 0.f) continue;
        for (int64_t k = 0; k < width_of[f]; ++k)
          d[c[arg[f] + k] * S + column_of[f] + k * stride_of[f]] += g[f];
      }
    }
  });
  return dtable;
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("lstm_forward", &lstm_forward, py::call_guard<py::gil_scoped_release>());
  module.def("lstm_backward", &lstm_backward, py::call_guard<py::gil_scoped_release>());
  module.def("sampled_softmax", &sampled_softmax, py::call_guard<py::gil_scoped_release>());
  module.def("char_forward", &char_forward, py::call_guard<py::gil_scoped_release>());
  module.def("char_backward", &char_backward, py::call_guard<py::gil_scoped_release>());
}
