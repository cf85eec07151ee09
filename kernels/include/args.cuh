// Parameter structs of the model's kernels. Each kernel takes exactly one struct, by value. Pointers come first, then
// ints, then floats, so that the host packs them without padding. Leading dimensions (ld*) count elements. A null
// pointer means that the operand is absent. Tensor maps, where a kernel has them, come before the pointers.
#pragma once
#include "bf16.cuh"
#include "tensor_map.cuh"

struct GemmArgs {
    const float* a;         // [rows, inner]
    const float* w;         // row layout [columns, inner], transposed layout [inner, columns]
    const float* bias;      // [columns]
    const float* residual;  // [rows, columns]
    float* c;               // [rows, columns]
    float* partial;         // [splits, rows, columns], for split-K only
    int rows, columns, inner;
    int lda, ldw, ldr, ldc;
    int activate;  // whether the activation function (activation.cuh) follows
    int splits;
};

template <class Element>
struct TmaGemmArgs {
    TensorMap a;              // [rows, inner], in boxes of a tile's rows and 2 chunks of 128 bytes
    TensorMap w;              // [columns, inner], in boxes of a tile's columns and 2 chunks
    const float* bias;        // [columns]
    const Element* residual;  // [rows, columns]
    Element* c;               // [rows, columns]
    const Element* ahead;     // weights of a later product, to prefetch into L2
    int rows, columns, inner;
    int ldr, ldc;
    int activate;
    int ahead_lines;        // cache lines of 128 bytes
    float eps;              // of the layernorm computed on the way, if any
};

struct OneRowBf16Args {
    const Bf16* a;         // [rows, inner]
    const Bf16* w;         // [columns, inner]
    const float* bias;     // [columns]
    const Bf16* residual;  // [rows, columns]
    void* c;               // [rows, columns]: bf16, or float where the entry says so
    int rows, columns, inner;
    int lda, ldw, ldr, ldc;
    int activate;
    float eps;             // of the layernorm computed on the way, if any
};

struct OneRowLayernormArgs {
    const float* x;     // [rows, inner]
    const float* w;     // [columns, inner], with the layernorm's gain and mean folded in
    const float* bias;  // [columns]
    float* c;           // [rows, columns]
    int rows, columns, inner;
    int ldx, ldw, ldc;
    int activate;
    float eps;
};

struct LayernormArgs {
    const float* x;
    const float* gain;   // absent when folded into the next weights
    const float* shift;
    float* out;
    int rows, columns, ldx, ldo;
    float eps;
};

struct LayernormAheadArgs {
    const float* x;
    const float* gain;   // absent when folded into the next weights
    const float* shift;
    float* out;
    const float* first;   // weights to prefetch: those of the next product,
    const float* second;  // and those of the one after it, if any
    int rows, columns, ldx, ldo;
    int first_lines, second_lines;  // cache lines of 128 bytes
    float eps;
};

struct AttentionArgs {
    const float* q;   // [batch * queries, heads * d_head]
    const float* k;   // [batch * seq, heads * d_head]
    const float* v;
    float* out;       // [batch * queries, heads * d_head]
    float* scores;    // [batch, heads, queries, seq], if scores go through memory
    int batch, seq, heads, d_head;
    int queries;      // output rows of each sequence: its last `queries` tokens
    int ldq, ldkv, ldo;
    float scale;
};

struct TmaAttentionArgs {
    TensorMap q;      // [batch, queries, heads * d_head], in boxes of 16 queries of one head
    TensorMap k;      // [batch, seq, heads * d_head], in boxes of 64 keys of one head
    TensorMap v;
    AttentionArgs attention;
};

// As AttentionArgs.
struct AttentionBf16Args {
    const Bf16* q;
    const Bf16* k;
    const Bf16* v;
    Bf16* out;
    void* scores;
    int batch, seq, heads, d_head;
    int queries;
    int ldq, ldkv, ldo;
    float scale;
};

struct TmaAttentionBf16Args {
    TensorMap q;      // [batch, queries, heads * d_head], in boxes of 16 queries of one head
    TensorMap k;      // [batch, seq, heads * d_head], in boxes of 64 keys of one head
    TensorMap v;
    AttentionBf16Args attention;
};

struct EmbedBf16Args {
    const int* tokens;       // [batch * seq]
    const float* embedding;  // [vocab, columns]
    const float* position;   // [seq, columns]
    Bf16* out;
    int rows, seq, columns, ldo;
};

struct EmbedArgs {
    const int* tokens;       // [batch * seq]
    const float* embedding;  // [vocab, columns]
    const float* position;   // [seq, columns]
    float* out;
    int rows, seq, columns, ldo;
};

struct StoreArgs {
    const float* bias;      // [columns]
    const float* residual;  // [rows, columns]
    float* c;               // [rows, columns], read and written
    int rows, columns, ldr, ldc;
    int activate;
};

struct PassArgs {
    const int* tokens;       // [batch * seq]
    const float* embedding;  // [vocab, d_model]
    const float* position;   // [seq, d_model]
    // Weights [inner, columns] and biases of layer 0, followed by those of the next layers.
    const float *wqkv, *bqkv, *wo, *bo, *w1, *b1, *w2, *b2;
    const float *whead, *bhead;
    // Activations of layer 0. If `keep_layers`, those of the next layers follow; else all layers share these.
    float *x, *xn1, *qkv, *att, *x_mid, *xn2, *h;
    // Activations of the pruned last layer and after it: one row a sequence.
    float *q_last, *att_last, *x_mid_last, *xn2_last, *h_last, *x_last, *xnf, *logits;
    float* partial;     // partial results of the current product
    long long* stamps;  // [tasks + 1][2]: cycles and nanoseconds of block 0 before and after each task
    int batch, seq, layers, d_model, heads, d_ff, vocab;
    int keep_layers;
    int splits_qkv, splits_wo, splits_w1, splits_w2, splits_kv;
    int splits_q_last, splits_wo_last, splits_w1_last, splits_w2_last, splits_head;
    float eps, scale;
};
