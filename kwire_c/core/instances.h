/* Include Python.h first. Instances of message classes: creating, freeing, and fields by offset. */
#ifndef KWIRE_INSTANCES_H
#define KWIRE_INSTANCES_H

#include "plan.h"

#define KW_SLOT(self, at) (*(PyObject **)((char *)(self) + (at)))
#define KW_PLACE(self, at) ((uint8_t *)(self) + (at))
#define KW_UNKNOWN_AT ((uint32_t)sizeof(PyObject))
#define KW_SPARE_BYTES (8 << 20) /* of freed instances kept per class: new pages cost more than decoding */
#define KW_ALL_SPARE_BYTES (32 << 20) /* of all classes */

#if defined(Py_GIL_DISABLED) || defined(Py_TRACE_REFS) || defined(__SANITIZE_ADDRESS__)
#define KW_PLAIN_OBJECTS 1
#endif

static inline void *kw_closure(PyTypeObject *type) {
    return type->tp_getset == NULL ? NULL : type->tp_getset[0].closure;
}

/* A new instance with every default; NULL with MemoryError set. Instances without garbage collection are copies of
   the model, header included; their types live as long as the process, so that their references are not counted. */
static inline PyObject *kw_new_instance(const kw_class *kind) {
    kw_class *cls = (kw_class *)kind; /* not const: its spare instances change */
    char *self;
    if (cls->collected) {
        self = (char *)_PyObject_GC_New((PyTypeObject *)cls->type);
        if (self == NULL) return NULL;
        memcpy(self + KW_UNKNOWN_AT, cls->model + KW_UNKNOWN_AT, cls->size - KW_UNKNOWN_AT);
        return (PyObject *)self;
    }
#ifdef KW_PLAIN_OBJECTS
    self = (char *)PyObject_Malloc(cls->size);
    if (self == NULL) return PyErr_NoMemory();
    PyObject_Init((PyObject *)self, (PyTypeObject *)cls->type);
    memcpy(self + KW_UNKNOWN_AT, cls->model + KW_UNKNOWN_AT, cls->size - KW_UNKNOWN_AT);
#else
    if (cls->spare != NULL) {
        self = (char *)cls->spare;
        cls->spare = *(void **)self;
        cls->n_spare--;
        *cls->spared -= cls->size;
    } else {
        self = (char *)PyObject_Malloc(cls->size);
        if (self == NULL) return PyErr_NoMemory();
    }
    for (uint32_t i = 0; i < cls->size; i += 16) memcpy(self + i, cls->model + i, 16);
#endif
    return (PyObject *)self;
}

static inline void kw_free_instance(PyObject *self, kw_class *cls) {
    if (cls->collected) {
        PyTypeObject *type = Py_TYPE(self);
        PyObject_GC_Del(self);
        Py_DECREF(type);
        return;
    }
#ifdef KW_PLAIN_OBJECTS
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
#else
    if ((uint64_t)cls->n_spare * cls->size < KW_SPARE_BYTES && *cls->spared < KW_ALL_SPARE_BYTES) {
        *(void **)self = cls->spare;
        cls->spare = self;
        cls->n_spare++;
        *cls->spared += cls->size;
    } else {
        PyObject_Free(self);
    }
#endif
}

/* Copies into the model the header that every instance starts with. */
static inline void kw_head_model(kw_class *cls) {
#ifndef KW_PLAIN_OBJECTS
    if (!cls->collected) {
        PyObject_Init((PyObject *)cls->model, (PyTypeObject *)cls->type);
    }
#endif
}

#endif
