def test_a(app, document):
    from decimal import Decimal
    d = app.test_client().get("/openapi.json").get_json()
    def walk(a, b, path):
        if isinstance(b, Decimal): print("DEC", path, repr(a), b); return
        if type(a) != type(b): print(path, a, b); return
        if isinstance(a, dict):
            for k in set(a)|set(b):
                if k not in a or k not in b: print(path, k, k in a, k in b)
                else: walk(a[k], b[k], path+[k])
        elif isinstance(a, list):
            for i,(x,y) in enumerate(zip(a,b)): walk(x,y,path+[i])
        elif a != b: print(path, a, b)
    walk(d, document.spec, [])
    assert 0
