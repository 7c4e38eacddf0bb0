// The families of the op table, one function a file of rows; table.cpp joins them. A new family is one line here and
// one in table.cpp. Only files of this folder include this.
#pragma once
#include <span>

#include "ops/op.h"

namespace gaf {

std::span<const OpRow> pointwise_rows();    // arithmetic, one element at a time
std::span<const OpRow> logic_rows();        // comparisons, boolean and bit operations, Where
std::span<const OpRow> activation_rows();   // Relu and its kin
std::span<const OpRow> convert_rows();      // Cast and what goes with it
std::span<const OpRow> reduction_rows();    // Reduce*, and their composites
std::span<const OpRow> softmax_rows();      // Softmax LogSoftmax Hardmax and the losses
std::span<const OpRow> norm_rows();         // normalisations
std::span<const OpRow> contraction_rows();  // MatMul, Gemm
std::span<const OpRow> conv_rows();         // Conv, ConvTranspose
std::span<const OpRow> pool_rows();         // windows and global pools
std::span<const OpRow> shape_rows();        // views, Shape, Range: sizes as values
std::span<const OpRow> move_rows();         // Concat Split Pad Tile ...
std::span<const OpRow> index_rows();        // Gather and Scatter families, TopK, NonZero ...
std::span<const OpRow> scatter_rows();      // writes at positions held in a tensor
std::span<const OpRow> order_rows();        // TopK, ArgMax, NonZero, Unique, CumSum ...: along an axis, by value
std::span<const OpRow> resize_rows();       // Resize, Upsample, GridSample ...
std::span<const OpRow> control_rows();      // If, Loop, Scan
std::span<const OpRow> recurrent_rows();    // LSTM, GRU, RNN
std::span<const OpRow> attention_rows();    // Attention, RotaryEmbedding
std::span<const OpRow> state_space_rows();  // LinearAttention, CausalConvWithState
std::span<const OpRow> loss_rows();         // losses over classes
std::span<const OpRow> quantize_rows();     // QuantizeLinear ..., integer products
std::span<const OpRow> einsum_rows();
std::span<const OpRow> vision_rows();  // GridSample, RoiAlign, NonMaxSuppression ...
std::span<const OpRow> patch_rows();   // LRN, MaxUnpool, Col2Im, DeformConv ...
std::span<const OpRow> signal_rows();  // DFT, STFT, windows
std::span<const OpRow> draw_rows();    // Random*, Bernoulli, Multinomial

}  // namespace gaf
