"""Step-wise truncation probing: what does the model answer after k steps?"""
